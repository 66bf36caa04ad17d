#include "engine/range_search.h"

#include <utility>

namespace bitweigh {

namespace {

class AllWithin : public AnswerSink {
public:
    AllWithin(std::size_t n_queries, SearchCounters* counters)
        : found(n_queries), counters_(counters) {}

    void take(std::size_t query, std::vector<Neighbour>&& rows,
              const SearchCounters& counters) override {
        found[query] = std::move(rows);
        counters_[query] = counters;
    }

    std::vector<std::vector<Neighbour>> found;

private:
    SearchCounters* counters_;
};

}  // namespace

std::vector<std::vector<Neighbour>> range_search(SearchRequest request, const double* radii,
                                                 std::size_t limit, SearchCounters* counters,
                                                 const InterruptCheck& check) {
    request.k = every_row;
    request.radii = radii;
    request.limit = limit;
    AllWithin answers(request.n_queries, counters);
    search_in_tiles(request, answers, check);
    return std::move(answers.found);
}

}  // namespace bitweigh
