#include "engine/range_search.h"

#include <cstddef>
#include <utility>

namespace bitweigh {

namespace {

class RangeAnswers : public AnswerSink {
public:
    RangeAnswers(std::size_t n_queries, SearchCounters* counters)
        : found(n_queries), counters_(counters) {}

    void take(std::size_t query, std::vector<Neighbour>&& rows,
              const SearchCounters& counters) override {
        found[query] = std::move(rows);
        counters_[query] = counters;
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

}  // namespace bitweigh
