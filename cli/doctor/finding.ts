import type { Paint } from '../paint.ts'
import { wrapped } from '../wrap.ts'

/** `warning` is worth knowing and works all the same; `broken` keeps the server from doing its work. */
export type State = 'fine' | 'warning' | 'broken'

/** What one check found. */
export interface Finding {
  name: string
  state: State
  detail: string
  /** What to do about it; null when there is nothing to do. */
  advice: string | null
}

export const fine = (name: string, detail: string): Finding => ({ name, state: 'fine', detail, advice: null })
export const warning = (name: string, detail: string, advice: string): Finding => ({
  name,
  state: 'warning',
  detail,
  advice,
})
export const broken = (name: string, detail: string, advice: string): Finding => ({
  name,
  state: 'broken',
  detail,
  advice,
})

/** Where what is so begins, behind the state and the name. Columns. */
const detailAt = 27

/** One finding as lines of at most `width` signs (0 in a pipe: any): state, name, what is so; below, what to do. */
export function drawFinding({ name, state, detail, advice }: Finding, paint: Paint, width = 0): string {
  const colour = state === 'fine' ? paint.good : state === 'warning' ? paint.warning : paint.bad
  const below = (text: string, indent: number) =>
    (width > 0 ? wrapped(text, Math.max(30, width - indent)) : [text]).join(`\n${' '.repeat(indent)}`)
  const line = `${colour(state.padEnd(7))}  ${name.padEnd(16)}  ${below(detail, detailAt)}`
  return advice === null
    ? line
    : `${line}\n${' '.repeat(detailAt)}${paint.name('→')} ${below(advice, detailAt + '→ '.length)}`
}

/** The last line. */
export function drawVerdict(findings: readonly Finding[]): string {
  const count = (state: State) => findings.filter(finding => finding.state === state).length
  const [warnings, faults] = [count('warning'), count('broken')]
  const words = (n: number, word: string) => `${n} ${word}${n === 1 ? '' : 's'}`
  if (faults > 0) return `${words(faults, 'thing')} to repair${warnings > 0 ? `, ${words(warnings, 'warning')}` : ''}.`
  return warnings > 0 ? `Everything works; ${words(warnings, 'warning')}.` : 'Everything is fine.'
}
