import type { FindingState, InspectionFinding } from '../../core/inspection.ts'
import { type Paint, wrapText } from '../terminal/styled-line.ts'

export { broken, fine, type InspectionFinding as Finding, warning } from '../../core/inspection.ts'
export type State = FindingState

/** Column of the detail, after the state and the name. */
const detailAt = 27

/** Draws a finding in lines of at most `width` columns (0: no limit): state, name and detail; below, the advice. */
export function drawFinding({ name, state, detail, advice }: InspectionFinding, paint: Paint, width = 0): string {
  const colour = state === 'fine' ? paint.good : state === 'warning' ? paint.warning : paint.bad
  const below = (text: string, indent: number) =>
    (width > 0 ? wrapText(text, Math.max(30, width - indent)) : [text]).join(`\n${' '.repeat(indent)}`)
  const line = `${colour(state.padEnd(7))}  ${name.padEnd(16)}  ${below(detail, detailAt)}`
  return advice === null
    ? line
    : `${line}\n${' '.repeat(detailAt)}${paint.name('→')} ${below(advice, detailAt + '→ '.length)}`
}

/** Returns the last line of the report. */
export function drawVerdict(findings: readonly InspectionFinding[]): string {
  const count = (state: State) => findings.filter(finding => finding.state === state).length
  const [warnings, faults] = [count('warning'), count('broken')]
  const counted = (n: number, word: string) => `${n} ${word}${n === 1 ? '' : 's'}`
  if (faults > 0)
    return `${counted(faults, 'problem')} to repair${warnings > 0 ? `, ${counted(warnings, 'warning')}` : ''}.`
  return warnings > 0 ? `Everything works; ${counted(warnings, 'warning')}.` : 'Everything is fine.'
}
