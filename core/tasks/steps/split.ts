import { invalid } from '../../failure.ts'
import { parsed } from '../../schemas/issues.ts'
import { SplitRequest, SplitResult, type SplitUnit, splitSizes } from '../../schemas/steps.ts'
import type { StepTaskRecord } from '../task.ts'
import { stepTask } from './step-task.ts'

/** Bytes of text that are counted as a token. Most tokenizers make longer ones. */
const bytesPerToken = 3
const defaultMaxChunks = 1_000
/** Characters of all chunks together: an overlap repeats text. */
const maxTotal = 12 << 20

/** Parts of a text that are kept whole: where each ends, its weight, and how well a chunk can end after it. */
interface Units {
  ends: number[]
  weights: number[]
  breaks: number[]
}

const lineEnd = /\n/g
const paragraphEnd = /\n[^\S\n]*\n\s*/g
/** A word with the white space after it. Words of scripts without spaces are cut by their weight. */
const word = /\S+\s*|\s+/g

/** Returns the units of a text. `heaviest`: words that weigh more are cut. */
function unitsOf(text: string, by: SplitUnit, heaviest: number): Units {
  const units: Units = { ends: [], weights: [], breaks: [] }
  const add = (end: number, weight = 1, strength = 0) => {
    units.ends.push(end)
    units.weights.push(weight)
    units.breaks.push(strength)
  }
  switch (by) {
    case 'characters':
      for (let at = 0; at < text.length; ) add((at += lengthAt(text, at)))
      return units
    case 'lines':
    case 'paragraphs': {
      for (const { 0: found, index } of text.matchAll(by === 'lines' ? lineEnd : paragraphEnd))
        add(index + found.length)
      if ((units.ends.at(-1) ?? 0) < text.length) add(text.length)
      return units
    }
    case 'tokens':
      for (const { 0: found, index } of text.matchAll(word)) {
        const weight = Buffer.byteLength(found)
        if (weight <= heaviest) add(index + found.length, weight, breakAfter(found))
        else
          for (let at = 0; at < found.length; ) {
            const length = lengthAt(found, at)
            add(index + at + length, Buffer.byteLength(found.slice(at, at + length)))
            at += length
          }
      }
      return units
  }
}

/** Code units of the character at a position. */
const lengthAt = (text: string, at: number): number => (text.codePointAt(at)! > 0xffff ? 2 : 1)

/** 3 for the last word of a paragraph, 2 of a line, 1 of a sentence. */
function breakAfter(found: string): number {
  const line = found.indexOf('\n')
  if (line >= 0) return found.includes('\n', line + 1) ? 3 : 2
  return /[.!?…]["')\]]*\s$/.test(found) ? 1 : 0
}

/** How much of a chunk is given up, at most, so that it ends well. */
const givenUp = 1 / 3

/** Returns how many of the units from `from` to `to` a chunk has: as many as end with the strongest break near the end. */
function wellEnded({ weights, breaks }: Units, from: number, to: number, size: number): number {
  let best = to
  let dropped = 0
  for (let at = to; at > from + 1 && dropped <= size * givenUp; at--) {
    if (breaks[at - 1]! > breaks[best - 1]!) best = at
    dropped += weights[at - 1]!
  }
  return best
}

/** Splits a text. Takes time linear in the length of all chunks. Throws Failure `invalid_value` for too many of them. */
function split({ text, by = 'tokens', size: asked, overlap = 0, max_chunks }: SplitRequest): SplitResult {
  const perUnit = by === 'tokens' ? bytesPerToken : 1
  const size = (asked ?? splitSizes[by]) * perUnit
  const most = max_chunks ?? defaultMaxChunks
  const units = unitsOf(text, by, size)
  const { ends, weights } = units
  const chunks: string[] = []
  let total = 0
  for (let from = 0; from < ends.length; ) {
    let to = from
    let weight = 0
    while (to < ends.length && (to === from || weight + weights[to]! <= size)) weight += weights[to++]!
    if (by === 'tokens' && to < ends.length) to = wellEnded(units, from, to, size)
    const whole = text.slice(from === 0 ? 0 : ends[from - 1], ends[to - 1])
    const chunk = by === 'characters' ? whole : by === 'lines' ? whole.replace(/\r?\n$/, '') : whole.trim()
    if (chunk !== '') {
      if (chunks.length === most)
        throw invalid('max_chunks', `The text makes more than ${most} chunks. Set a larger 'size' or 'max_chunks'.`)
      if ((total += chunk.length) > maxTotal)
        throw invalid('overlap', 'All chunks together are larger than 12 MiB. Set a smaller overlap.')
      chunks.push(chunk)
    }
    if (to === ends.length) break
    let next = to
    for (let back = weights[next - 1]!; next > from + 1 && back <= overlap * perUnit; back += weights[next - 1]!) next--
    from = next
  }
  return { chunks, count: chunks.length }
}

/** The record of splitting a text. */
export const splitTask: StepTaskRecord = {
  ...stepTask,
  id: 'text/split',
  title: 'splitting of text',
  description: 'Split a text into chunks by tokens, characters, lines or paragraphs. Needs no model.',
  sample: { text: 'First paragraph.\n\nSecond paragraph.', by: 'paragraphs', size: 1 },
  request: SplitRequest,
  result: SplitResult,
  fill: inputs => parsed(SplitRequest, inputs),
  work: split,
}
