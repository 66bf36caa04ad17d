#include "engine/search.h"

#include <algorithm>

namespace bitweigh {

namespace {

class PaddedAnswers : public AnswerSink {
public:
    PaddedAnswers(const SearchAnswer& answer, std::size_t k) : answer_(answer), k_(k) {}

    void take(std::size_t query, std::vector<Neighbour>&& found,
              const SearchCounters& counters) override {
        double* distances = answer_.distances + query * k_;
        Id* ids = answer_.ids + query * k_;
        std::size_t i = 0;
        for (; i < found.size(); ++i) {
            distances[i] = found[i].distance;
            ids[i] = found[i].id;
        }
        std::fill(distances + i, distances + k_, padding_distance);
        std::fill(ids + i, ids + k_, padding_id);
        answer_.counters[query] = counters;
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
