// Hands pieces of HTML to the places on the page that wait for them, and what goes into their blanks.
export default function ({ data: { pieces: html, numbers, width, said, names, first, head } }) {
  const all = numbers.getChildAt(0).toArray()
  // What is said and shown of the chosen query, if it is here: of several queries, one after the other.
  const of = (chosen) => {
    const row = chosen.query - first
    const here = chosen.query !== null && chosen.head === head && !chosen.elsewhere && row in said
    return here ? { said: said[row], numbers: all.subarray(row * width, (row + 1) * width), names } : null
  }
  const pieces = (channel.pieces = { html, of })
  delete channel.chosen.elsewhere // what was chosen of another layer is here now
  tell("pieces")
  return () => {
    if (channel.pieces === pieces) channel.pieces = NO_PIECES
  }
}
