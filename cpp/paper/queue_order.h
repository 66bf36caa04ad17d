// The order in which Alg. 2 probes tables, which the paper leaves open.
#pragma once

namespace bitweigh::paper {

// Whether the tables of a round are probed in ascending or descending increase (Eq. 10). Ascending
// is as printed; it makes S-hat grow latest, contrary to the sentence that introduces it.
enum class QueueOrder { ascending, descending };

}  // namespace bitweigh::paper
