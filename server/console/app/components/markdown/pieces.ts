/** A part of a text: one that is read as Markdown, or one that is shown as it is because reading it would take too long. */
export interface Piece {
  text: string
  isPlain: boolean
}

/** Characters of lines that follow each other as one paragraph. What marks of emphasis mean in them is tried in any combination. */
const maxParagraph = 6_000
/** Marks of lists and quotes before a text, and spaces before such a mark, above which nesting is not read. */
const tooDeep = /^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])(?=[ \t>]|$)){12}|^[ \t]{60}/
/** Begins a line that is no part of the paragraph before. */
const beginsAnother = /^[ \t]*(?:[-*+|>#]|\d{1,9}[.)][ \t])/
const fenceMark = /^ {0,3}(`{3,}|~{3,})/

/** Splits a text, so that reading it takes a time in proportion to its length. The pieces together are the text. */
export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = []
  let section = ''
  let isPlain = false
  let paragraph = 0
  let fence = ''
  const end = () => {
    const last = pieces.at(-1)
    if (last && last.isPlain === isPlain) last.text += section
    else if (section !== '') pieces.push({ text: section, isPlain })
    section = ''
    isPlain = false
    paragraph = 0
  }
  for (const [line] of text.matchAll(/[^\n]*\n|[^\n]+$/g)) {
    const mark = fenceMark.exec(line)?.[1]
    if (fence !== '') {
      if (mark?.startsWith(fence) && line.trim() === mark) fence = ''
    } else if (mark !== undefined) fence = mark
    else if (line.trim() === '') {
      section += line
      end()
      continue
    } else {
      paragraph = beginsAnother.test(line) ? line.length : paragraph + line.length
      isPlain ||= paragraph > maxParagraph || tooDeep.test(line)
    }
    section += line
  }
  end()
  return pieces
}
