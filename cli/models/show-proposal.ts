import { previewConfigEdit } from '../../core/models/config-file.ts'
import { traitsOf } from '../../gpu/presets/presets.ts'
import { printable } from '../terminal/paint.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { Proposal } from './proposal.ts'

/** Prints what a dry run would write. */
export function showDryRun(
  proposal: Proposal,
  path: string,
  edit: (text: string, name: string) => string,
  { json }: { json?: boolean },
  terminal: Terminal,
): void {
  const { entry, memory, obstacle, advice } = proposal
  const lines = previewConfigEdit(path, edit, traitsOf)
  if (json) return terminal.json({ model: entry, memory, obstacle, advice, config: path, lines })
  showProposal(proposal, terminal)
  for (const sentence of obstacle === null ? advice : [obstacle, ...advice]) terminal.warn(sentence)
  terminal.print(`\nThis would be added to ${path}:\n`)
  for (const line of lines.added) terminal.print(printable(line))
}

/** Prints the proposed settings with their explanations. */
export function showProposal({ entry, facts }: Proposal, terminal: Terminal): void {
  const { paint } = terminal
  const width = Math.max(...facts.map(([about]) => about.length))
  terminal.print(paint.name(entry.id))
  for (const [about, text] of facts) terminal.print(`  ${paint.faint(about.padEnd(width))}  ${printable(text)}`)
}
