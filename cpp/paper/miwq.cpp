#include "paper/miwq.h"

#include <algorithm>

#include "engine/scan/scan.h"
#include "paper/bucket_queue.h"
#include "paper/table_merge.h"

namespace bitweigh::paper {

SingleIndex::SingleIndex(const Codes& codes)
    : codes_(codes), table_(codes, Substring{0, codes.n_bits}) {}

Answer SingleIndex::search(const double* costs, std::size_t k) const {
    Answer answer;
    // As printed it would look for K > n rows for ever: it ends when all rows are found.
    const std::size_t wanted = std::min(k, codes_.n);
    BucketQueue pri_que(costs, table_.substring());
    while (answer.neighbours.size() < wanted) {
        const Bucket code = pri_que.pop();
        const std::span<const Row> found = table_.bucket(code.key);
        ++answer.counters.buckets;
        answer.counters.empty_buckets += found.empty();
        answer.counters.candidates += found.size();
        // All rows of a bucket are equally far; the last bucket is cut to K.
        for (Row row : found) {
            if (answer.neighbours.size() < wanted) answer.neighbours.push_back({code.cost, row});
        }
    }
    // Buckets of equal cost come in no particular order.
    std::sort(answer.neighbours.begin(), answer.neighbours.end(), nearer);
    return answer;
}

MultiIndex::MultiIndex(const Codes& codes, std::size_t m)
    : codes_(codes), tables_(split_tables(codes, m)), met_(codes.n) {}

Answer MultiIndex::search(const double* costs, std::size_t k, QueueOrder order) {
    clean_vector_state();
    const std::size_t wanted = std::min(k, codes_.n);
    if (wanted == 0) return {};
    const std::lock_guard lock(mutex_);
    return TableMerge<BucketQueue>(codes_, tables_, met_, costs, wanted, order).run();
}

}  // namespace bitweigh::paper
