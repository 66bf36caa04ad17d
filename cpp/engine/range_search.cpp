#include "engine/range_search.h"

#include <cstddef>
#include <utility>

#include "engine/query/stoppable.h"

namespace bitweigh {

namespace {

class RangeAnswers : public AnswerSink {
public:
    RangeAnswers(std::size_t n_queries, SearchCounters* counters)
        : found(n_queries), counters_(counters) {}

    void take(std::size_t query, std::vector<Neighbour>&& rows, const SearchCounters& counters,
              Checkpoint&) override {
        found[query] = std::move(rows);
        if (counters_) counters_[query] = counters;
    }

    std::vector<std::vector<Neighbour>> found;  // Rows of each query.

private:
    SearchCounters* counters_;
};

}  // namespace

std::vector<std::vector<Neighbour>> range_search(const SearchRequest& request,
                                                 SearchCounters* counters,
                                                 const InterruptCheck& check) {
    RangeAnswers answers(request.n_queries, counters);
    search_in_tiles(request, answers, check);
    return std::move(answers.found);
}

void flatten(std::vector<std::vector<Neighbour>>& found, FlatRows& flat, std::int64_t* ends,
             Checkpoint& checkpoint) {
    std::size_t n = 0;
    for (const std::vector<Neighbour>& rows : found) n += rows.size();
    flat.distances.reserve(n);
    flat.ids.reserve(n);
    *ends++ = 0;
    for (std::vector<Neighbour>& rows : found) {
        visit_in_steps(rows.size(), &checkpoint, [&](std::size_t i) {
            flat.distances.push_back(rows[i].distance);
            flat.ids.push_back(rows[i].id);
        });
        *ends++ = static_cast<std::int64_t>(flat.ids.size());
        checkpoint.done(rows.size() * sizeof(Neighbour));
        rows = std::vector<Neighbour>();
    }
}

}  // namespace bitweigh
