#include "paper/miwq.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/scan/scan.h"
#include "paper/bucket_queue.h"
#include "paper/table_merge.h"

namespace bitweigh::paper {

SingleIndex::SingleIndex(const Codes& codes, Checkpoint& checkpoint)
    : codes_(codes), table_(codes, Substring{0, codes.n_bits}, checkpoint) {}

Answer SingleIndex::search(const double* costs, std::size_t k, Checkpoint& checkpoint) const {
    Answer answer;
    // As printed it would search forever for K > n rows: here it ends when all rows are found.
    const std::size_t n_found = std::min(k, codes_.n);
    BucketQueue pri_que(costs, table_.substring());
    while (answer.neighbours.size() < n_found) {
        const Bucket code = pri_que.pop();
        const std::span<const Row> found = table_.bucket(code.key);
        count_round(++answer.counters.buckets, 1, checkpoint);
        answer.counters.empty_buckets += found.empty();
        answer.counters.candidates += found.size();
        // All rows of a bucket are equally far; the last bucket is cut to K.
        for_each_row(found, checkpoint, [&](Row row) {
            if (answer.neighbours.size() < n_found) answer.neighbours.push_back({code.cost, row});
        });
    }
    // Buckets of equal cost come in no particular order.
    sort_by_distance(answer.neighbours, checkpoint);
    return answer;
}

MultiIndex::MultiIndex(const Codes& codes, std::size_t m, Checkpoint& checkpoint)
    : codes_(codes), tables_(split_tables(codes, m, checkpoint)), spare_(codes.n) {}

Answer MultiIndex::search(const double* costs, std::size_t k, QueueOrder order,
                          Checkpoint& checkpoint) {
    clean_vector_state();
    const std::size_t n_found = std::min(k, codes_.n);
    if (n_found == 0) return {};
    std::unique_ptr<SeenRows> seen = spare_.take();
    TableMerge<BucketQueue> merge(codes_, tables_, *seen, costs, n_found, order, checkpoint);
    Answer answer = merge.run();
    spare_.give_back(std::move(seen));
    return answer;
}

}  // namespace bitweigh::paper
