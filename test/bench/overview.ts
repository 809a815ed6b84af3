/**
 * What an open overview of the console costs the server, in percent of a core: the processor time of the server while a
 * browser shows the page, without that of an idle server. `npx node test/bench/overview.ts 30`; seconds for each.
 * Needs Chromium and the packed executable.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { openConsole } from '../console/_console.ts'

const seconds = Number(process.argv[2] ?? 30)
/** Clock ticks a second of /proc/<pid>/stat on Linux. */
const ticks = 100

const cpuSeconds = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticks
}

await using console_ = await openConsole()
const { pid } = console_.server

async function percent(): Promise<number> {
  const before = cpuSeconds(pid)
  await delay(seconds * 1_000)
  return (100 * (cpuSeconds(pid) - before)) / seconds
}

await console_.call('/api/models/infer/tiny-chat/load?wait=60', undefined, 'POST')
await delay(5_000)
const idle = await percent()
await using opened = await console_.open('/')
await opened.page.getByRole('heading', { name: 'Last 60 minutes' }).waitFor()
await delay(3_000)
let requests = 0
opened.page.on('request', () => requests++)
const open = await percent()
console.log(
  `overview: ${(open - idle).toFixed(2)} % of a core for an open page (idle ${idle.toFixed(2)} %, open ${open.toFixed(2)} %), ${requests} requests, ${seconds} s each`,
)
