import { percentile } from '../e2e/_home.ts'
import type { Box } from './box.ts'
import { type Ending, judgements } from './judgements.ts'
import { models } from './models.ts'

const seconds = (ms: number): string => (Number.isNaN(ms) ? '-' : (ms / 1_000).toFixed(1))

function table(rows: readonly (readonly (string | number)[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map(row => String(row[column]).length)))
  return rows.map(row =>
    row
      .map((cell, at) => (at === 0 ? String(cell).padEnd(widths[at]!) : String(cell).padStart(widths[at]!)))
      .join('  '),
  )
}

/** How long callers waited until their answer began. */
function waitsBy(title: string, names: readonly string[], of: 'model' | 'actor', { calls }: Box): string[] {
  const rows = names.map(name => {
    const own = calls.filter(call => call[of] === name)
    const waits = own.filter(call => call.outcome === 'served').map(call => call.began! - call.at)
    const count = (outcome: string) => own.filter(call => call.outcome === outcome).length
    const at = [50, 95, 100].map(which => seconds(percentile(waits, which)))
    return [name, waits.length, count('refused'), count('broken'), ...at]
  })
  return table([[title, 'served', 'refused', 'broken', 'wait p50', 'p95', 'max (s)'], ...rows])
}

/** The reasons that were given, without names and numbers, most frequent first. */
function reasons({ waits }: Ending): string[] {
  const counts = new Map<string, number>()
  for (const { sentences } of waits.seen.values()) {
    const kinds = [...sentences].map(one => one.replaceAll(/'[^']+'/g, "'…'").replaceAll(/\d+/g, 'N'))
    for (const kind of new Set(kinds)) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return [...counts].toSorted((a, b) => b[1] - a[1]).map(([kind, count]) => `${String(count).padStart(5)}  ${kind}`)
}

/** The page that the run ends with, and whether every judgement holds. */
export function figures(ending: Ending): { lines: string[]; good: boolean } {
  const { box, waits, lost, vulkan } = ending
  const { cards, calls, acknowledged, faults } = box
  const verdicts = judgements.map(({ name, contradictions }) => ({ name, found: contradictions(ending) }))
  const callers = [...new Set(calls.map(call => call.actor))]
  const kinds = [...new Set(acknowledged.map(({ kind }) => kind))].map(kind => {
    const own = acknowledged.filter(one => one.kind === kind)
    return [kind, own.length, own.filter(({ id }) => lost.has(id)).length]
  })
  const loads = models.map(({ id }) => [id, cards.loads.get(id) ?? 0])
  const used = seconds(box.now())
  const most = (cards.most() / 1_024).toFixed(1)
  return {
    good: verdicts.every(({ found }) => found.length === 0),
    lines: [
      `Two cards of 24 GB, six models, room for two: ${used} s`,
      '',
      ...waitsBy('caller', callers, 'actor', box),
      '',
      ...waitsBy(
        'model',
        models.map(({ id }) => id),
        'model',
        box,
      ),
      '',
      ...table([['acknowledged', 'work', 'lost'], ...kinds]),
      '',
      ...table([
        ['model', 'loads'],
        ...loads,
        ['all', [...cards.loads.values()].reduce((sum, count) => sum + count, 0)],
      ]),
      `loads that found too little memory: ${cards.refused.length}; most memory of a card in use: ${most} GiB`,
      '',
      ...faults.map(({ name, at, result }) => `${seconds(at).padStart(5)} s  ${name}: ${result || 'not over'}`),
      '',
      `Vulkan device: ${vulkan.result}`,
      '',
      `${waits.seen.size} requests and jobs were seen waiting, with these reasons:`,
      ...reasons(ending),
      '',
      ...verdicts.flatMap(({ name, found }) => [
        `${found.length === 0 ? 'holds ' : 'FAILED'}  ${name}`,
        ...found.slice(0, 10).map(line => `        ${line}`),
        ...(found.length > 10 ? [`        and ${found.length - 10} more`] : []),
      ]),
    ],
  }
}
