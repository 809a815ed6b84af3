import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { openAsIs } from '../../../core/store/sqlite/database.ts'
import { sendSignal } from '../../../gpu/launcher/processes.ts'
import { fakeModel } from '../../_app.ts'
import { full, killsOf } from '../../_full.ts'
import { lastingPort } from '../../e2e/_home.ts'
import { temporaryFolder } from '../_infer.ts'
import { serve } from '../_serve.ts'

const kills = killsOf(4, 60)
const slots = 8
/** Units that a token may spend, and the most that one of its requests costs. */
const [spendLimit, mostOfOne] = [20_000, 1_100]

/** What is read of the answers. */
interface Content {
  id: string
  secret: string
  organization: { id: string }
  token: { id: string }
}

const roleOf = (isControl: boolean, line: string): string => {
  if (isControl) return 'control'
  if (line.includes('__front')) return 'front'
  if (line.includes('keeper')) return 'keeper'
  return /^[^\0]*\/node\0/.test(line) && line.includes('--port') ? 'engine' : 'other'
}

/** The processes of a data directory, each with what it is. */
function processesOf(dataDir: string, control: number): { pid: number; role: string }[] {
  return readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      const [environment, line, stat] = ['environ', 'cmdline', 'stat'].map(file =>
        readFileSync(`/proc/${name}/${file}`, 'utf8'),
      ) as [string, string, string]
      // The keeper has an environment of its own.
      const isOwn = environment.includes(dataDir) || readlinkSync(`/proc/${name}/cwd`).startsWith(dataDir)
      if (!isOwn || / Z /.test(stat.slice(stat.lastIndexOf(')')))) return []
      const pid = Number(name)
      return [{ pid, role: roleOf(pid === control, line) }]
    } catch {
      return []
    }
  })
}

const completion = (content: string, more: object = {}) => ({ messages: [{ role: 'user', content }], ...more })

test.each(full ? [2, 4] : [2])(
  `${kills} kills of random processes with %d gateway processes: no job is lost, each is billed once, limits hold`,
  { timeout: 120_000 + kills * 10_000 },
  async processes => {
    const dataDir = temporaryFolder()
    const port = await lastingPort()
    const price = { input_per_million_tokens: 1_000_000 }
    const models = [
      fakeModel('free', [], { concurrency: slots }),
      fakeModel('priced', [], { concurrency: slots, price }),
    ]
    const limits = { min_free_disk: '1MiB', ballast: '1MiB', adopt_grace: 5_000, engine_backoff: 50 }
    const config = { listen: `127.0.0.1:${port}`, gateway_processes: processes, limits, models }
    writeFileSync(join(dataDir, 'infer.yaml'), stringify(config))
    onTestFinished(() => {
      for (const { pid } of processesOf(dataDir, 0)) sendSignal(pid, 'SIGKILL')
    })
    const start = () => serve(dataDir, [], { INFER_TEST_DATA: dataDir })
    let server = await start()
    const secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
    const send = async (path: string, by: string, body?: object, more: Record<string, string> = {}) => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        headers: { authorization: `Bearer ${by}`, 'content-type': 'application/json', ...more },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(30_000),
      })
      return { status: answer.status, content: (await answer.json()) as Content }
    }
    const { content: me } = await send('/api/me', secret)
    const { content: spender } = await send(`/api/organizations/${me.organization.id}/tokens`, secret, {
      name: 'spender',
      scopes: ['user:read', 'user:write'],
      monthly_spend_limit: spendLimit,
    })

    const over = new AbortController()
    const acknowledged = new Map<string, string>()
    const surprises = new Set<string>()
    let answered = 0
    const until = async (met: () => boolean) => {
      const deadline = performance.now() + 60_000
      while (!met()) {
        if (performance.now() > deadline) throw new Error(`No progress: ${server.stderr().slice(-2_000)}`)
        await delay(10)
      }
    }
    /** Sends jobs, each again with the same key until it is acknowledged. */
    async function submit(name: number): Promise<void> {
      for (let at = 0; !over.signal.aborted; at++) {
        const key = `${name}-${at}`
        const job = { task: 'std/chat-completion', model_id: 'free', inputs: completion('mode:slow,ms=20') }
        while (!acknowledged.has(key)) {
          const { status, content } = await send('/api/jobs', secret, job, {
            'idempotency-key': key,
          }).catch(() => ({ status: 0, content: { id: '' } as Content }))
          if (status === 202) acknowledged.set(key, content.id)
          else if (![0, 503].includes(status)) surprises.add(`${status} ${JSON.stringify(content)}`)
          await delay(20)
        }
      }
    }
    /** Sends chats, which gateway processes answer where they can. */
    async function chat(model: string, by: string): Promise<void> {
      while (!over.signal.aborted) {
        const body = { model, ...completion('a '.repeat(500)) }
        const { status, content } = await send('/std/v1/chat/completions', by, body).catch(() => ({
          status: 0,
          content: '',
        }))
        if (status === 200) answered++
        // A killed engine fails its requests; a spend limit that is reached refuses them.
        else if (![0, 429, 500, 502, 503].includes(status)) surprises.add(`${status} ${JSON.stringify(content)}`)
        await delay(20)
      }
    }
    const clients = [
      ...[1, 2, 3, 4].map(submit),
      ...[1, 2, 3].map(() => chat('free', secret)),
      ...[1, 2, 3].map(() => chat('priced', spender.secret)),
    ]
    const killed = new Map<string, number>()
    for (let round = 0; round < kills; round++) {
      const [jobs, chats] = [acknowledged.size, answered]
      await until(() => acknowledged.size > jobs + 10 && answered > chats + 5)
      await delay(Math.random() * 100)
      const roles = Object.groupBy(processesOf(dataDir, server.child.pid!), ({ role }) => role)
      // Each role as often as the others, and every one of them even in a few rounds.
      const role = ['control', 'front', 'keeper', 'engine'][round < 4 ? round : Math.floor(Math.random() * 4)]!
      const among = roles[role] ?? []
      const victim = among[Math.floor(Math.random() * among.length)]
      if (!victim) continue
      killed.set(role, (killed.get(role) ?? 0) + 1)
      sendSignal(victim.pid, 'SIGKILL')
      if (role !== 'control') continue
      await once(server.child, 'exit')
      server = await start()
    }
    const [jobs, chats] = [acknowledged.size, answered]
    const database = openAsIs(join(dataDir, 'infer.db'), { readonly: true })
    onTestFinished(() => void database.close())
    const spent = database.prepare('SELECT sum(cost) / 1e6 FROM ledger WHERE token_id = ?').pluck()
    await until(() => acknowledged.size > jobs + 10 && answered > chats + 5)
    // On a busy machine the chats have cost little until here.
    await until(() => Number(spent.get(spender.token.id)) > spendLimit / 2)
    over.abort()
    await Promise.all(clients)
    const unfinished = database.prepare("SELECT count(*) FROM jobs WHERE status IN ('pending', 'processing')").pluck()
    await expect.poll(() => unfinished.get(), { timeout: 60_000 }).toBe(0)

    server.child.kill('SIGTERM')
    expect(await server.ends()).toBe(0)
    await expect.poll(() => processesOf(dataDir, 0)).toEqual([])
    const ids = [...acknowledged.values()].toSorted()
    expect(new Set(ids).size).toBe(ids.length)
    const billed = database.prepare("SELECT job_id FROM ledger WHERE kind = 'async' ORDER BY job_id").pluck().all()
    expect(billed).toEqual(ids)
    const twice = database.prepare('SELECT job_id FROM ledger GROUP BY job_id HAVING count(*) > 1').all()
    expect(twice).toEqual([])
    const statuses = database.prepare("SELECT DISTINCT status FROM ledger WHERE kind = 'async'").pluck().all()
    expect(statuses).toEqual(['completed'])
    expect(spent.get(spender.token.id)).toBeLessThan(spendLimit + mostOfOne)
    expect([...surprises]).toEqual([])
    process.stdout.write(
      `kills: ${JSON.stringify(Object.fromEntries(killed))} with ${processes} gateway processes: 0 of ${ids.length} jobs lost, ${answered} calls answered\n`,
    )
  },
)
