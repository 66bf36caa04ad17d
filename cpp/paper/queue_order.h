// A choice that Alg. 2 leaves open.
#pragma once

namespace bitweigh::paper {

// In which order the tables of a round are probed, by the increase of Eq. 10. Ascending is as
// printed; it makes S-hat grow latest, against the sentence that introduces it.
enum class QueueOrder { ascending, descending };

}  // namespace bitweigh::paper
