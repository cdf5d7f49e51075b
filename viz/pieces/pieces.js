// Hands pieces of HTML to the places on the page that wait for them, and what goes into their blanks.
export default function ({ data: { pieces: html, numbers, width, said, names, first } }) {
  const all = numbers.getChildAt(0).toArray()
  // What is said and shown of the chosen query, if it is here: of several queries, one after the other.
  const of = ({ query, elsewhere }) => {
    const row = query === null || elsewhere ? -1 : query - first
    return row in said ? { said: said[row], numbers: all.subarray(row * width, (row + 1) * width), names } : null
  }
  const pieces = (channel.pieces = { html, of })
  channel.chosen = { ...channel.chosen, elsewhere: undefined }
  tell("pieces")
  return () => {
    if (channel.pieces === pieces) channel.pieces = NO_PIECES
  }
}
