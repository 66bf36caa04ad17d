#include "engine/search.h"

#include <algorithm>

#include "engine/query/stoppable.h"

namespace bitweigh {

namespace {

class PaddedAnswers : public AnswerSink {
public:
    PaddedAnswers(const SearchAnswer& answer, std::size_t k) : answer_(answer), k_(k) {}

    void take(std::size_t query, std::vector<Neighbour>&& found, const SearchCounters& counters,
              Checkpoint& checkpoint) override {
        double* distances = answer_.distances + query * k_;
        Id* ids = answer_.ids + query * k_;
        const std::size_t n = found.size();
        visit_in_steps(n, &checkpoint, [&](std::size_t i) {
            distances[i] = found[i].distance;
            ids[i] = found[i].id;
        });
        visit_in_steps(k_ - n, &checkpoint, [&](std::size_t i) {
            distances[n + i] = padding_distance;
            ids[n + i] = padding_id;
        });
        if (answer_.counters) answer_.counters[query] = counters;
    }

private:
    const SearchAnswer& answer_;
    std::size_t k_;
};

}  // namespace

void search(const SearchRequest& request, const SearchAnswer& answer, const InterruptCheck& check) {
    PaddedAnswers answers(answer, request.k);
    search_in_tiles(request, answers, check);
}

}  // namespace bitweigh
