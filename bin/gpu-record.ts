import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './bundle.ts'

/**
 * Records what the checks found on a machine with a card: `npm run gpu:record -- gpu-checks.json`. Replaces the table of
 * that card in test/bench/RESULTS.md, and keeps what nvidia-smi printed as fixtures of the tests below
 * test/gpu/devices/recorded. The second argument replaces the root of the repository.
 */
interface Found {
  started_at: string
  card: string
  cards: number
  driver: string
  commit: string | null
  device: string
  checks: { name: string; outcome: string; figure: string }[]
  raw: Record<string, string>
}

/** The text of RESULTS.md before its first table. */
const notMeasured = 'No machine with a card has been measured yet.\n'

const [path, at = root] = process.argv.slice(2)
if (path === undefined) throw new Error('Name the file that the checks wrote: npm run gpu:record -- gpu-checks.json')
const found = JSON.parse(readFileSync(path, 'utf8')) as Found
const results = join(at, 'test', 'bench', 'RESULTS.md')
writeFileSync(results, withTable(readFileSync(results, 'utf8'), found))
const name = found.card.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
const folder = join(at, 'test', 'gpu', 'devices', 'recorded', name)
mkdirSync(folder, { recursive: true })
for (const [command, text] of Object.entries(found.raw))
  if (command.startsWith('nvidia-smi'))
    writeFileSync(join(folder, `${command.replaceAll(/[^A-Za-z0-9]+/g, '-')}.txt`), withoutIdentity(text))
process.stdout.write(`${results}: ${found.checks.length} checks of ${found.card}; outputs of nvidia-smi in ${folder}\n`)

/** The text with zeros for the numbers that one card in the world has: its UUID, serial number and device identifier. */
function withoutIdentity(text: string): string {
  const zeros = (number: string) => number.replaceAll(/[0-9a-f]/gi, '0')
  return text
    .replaceAll(/(?<=GPU-)[0-9a-f-]{36}/g, zeros)
    .replaceAll(/(?<=<serial>)\d+/g, zeros)
    .replaceAll(/(?<=<pdi>0x)[0-9a-f]+/g, zeros)
}

/** The document with the table of one card in place of the one before; new cards go to the end. */
function withTable(document: string, { started_at, card, cards, driver, commit, checks }: Found): string {
  const title = `## ${cards > 1 ? `${cards} × ` : ''}${card}`
  const cell = (text: string) => text.replaceAll('|', '\\|')
  const table = [
    title,
    '',
    `${started_at.slice(0, 10)}, driver ${driver}, commit ${commit ?? 'unknown'}`,
    '',
    '| check | outcome | figure |',
    '|---|---|---|',
    ...checks.map(check => `| ${check.name} | ${check.outcome} | ${cell(check.figure)} |`),
    '',
  ].join('\n')
  const parts = document.replace(notMeasured, '').split(/^(?=## )/m)
  const known = parts.findIndex(part => part.startsWith(`${title}\n`))
  if (known < 0) return [...parts.map(part => `${part.trimEnd()}\n`), table].join('\n')
  return parts.map((part, place) => (place === known ? table : `${part.trimEnd()}\n`)).join('\n')
}
