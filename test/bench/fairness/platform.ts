import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Pool } from 'undici'
import { stringify } from 'yaml'
import { openAccounts } from '../../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../../core/accounts/keys.ts'
import { openLog } from '../../../core/log.ts'
import { openAdminStore } from '../../../core/store/sqlite/admin.ts'
import { type PlanName, scopes } from '../../../core/store/store.ts'
import type { ServiceUse } from '../service.ts'

/** An organization without rate limits, and a token of it. */
export interface Organization {
  name: string
  secret: string
}

export interface Platform extends AsyncDisposable {
  /** Makes an organization, as `infer org create` and `infer token create` do beside a running server. */
  organization(name: string, plan?: PlanName): Promise<Organization>
  /** Posts JSON; anything but a 2xx is an error. */
  post(path: string, body: object, by: Organization, signal?: AbortSignal): Promise<unknown>
  get(path: string, by: Organization): Promise<unknown>
  /** What the engine has counted for a model. */
  used(model: string): Promise<ServiceUse>
}

const root = join(import.meta.dirname, '../../..')

/** Starts the engine and, from source, a server that offers each of the models with one slot. */
export async function openPlatform(models: string[]): Promise<Platform> {
  await using opened = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'infer-bench-'))
  opened.defer(() => rmSync(folder, { recursive: true, force: true }))

  const engine = await start([join(root, 'test/bench/service.ts')], /^(\d+)$/, process.env)
  opened.defer(() => end(engine.child))
  const engineUrl = `http://127.0.0.1:${engine.found}`

  const config = join(folder, 'infer.yaml')
  const offered = models.map(id => ({
    id,
    engine: 'remote',
    url: `${engineUrl}/${id}/v1`,
    concurrency: 1,
    max_queue: 1_000,
    dispatch_wait_ms: 600_000,
  }))
  const gateway_processes = Number(process.env.INFER_BENCH_FRONTS) || 1
  writeFileSync(config, stringify({ gateway_processes, models: offered, limits: { min_free_disk: 0, ballast: 0 } }))
  const dataDir = join(folder, 'data')
  const environment = { PATH: process.env.PATH, HOME: folder, INFER_DATA_DIR: dataDir }
  const server = await start(
    [join(root, 'cli/main.ts'), 'serve', '--config', config, '--listen', '127.0.0.1:0'],
    /(http:\/\/127\.0\.0\.1:\d+)/,
    environment,
  )
  opened.defer(() => end(server.child))

  const log = openLog('error')
  const store = await openAdminStore(dataDir, log)
  opened.defer(() => store.close())
  const accounts = openAccounts({ store, keys: openStoredKeys(dataDir), log })

  const pools = { infer: new Pool(server.found, { headersTimeout: 0 }), engine: new Pool(engineUrl) }
  for (const pool of Object.values(pools)) opened.defer(() => pool.destroy())
  const ask = async (pool: Pool, options: Parameters<Pool['request']>[0]): Promise<unknown> => {
    const { statusCode, body } = await pool.request(options)
    const text = await body.text()
    if (statusCode >= 300) throw new Error(`${options.method} ${options.path} answered ${statusCode}: ${text}`)
    return JSON.parse(text)
  }
  const open = opened.move()
  return {
    async organization(name, plan = 'free') {
      const unlimited = { requestsPerMinute: 0, jobsPerMinute: 0 }
      const { id } = await accounts.createOrganization({ name, plan, ...unlimited })
      const { secret } = await accounts.issue({ organizationId: id, name, scopes: [...scopes], expiresAt: null })
      return { name, secret }
    },
    post: (path, body, { secret }, signal) =>
      ask(pools.infer, {
        method: 'POST',
        path,
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal,
      }),
    get: (path, { secret }) =>
      ask(pools.infer, { method: 'GET', path, headers: { authorization: `Bearer ${secret}` } }),
    used: async model =>
      ((await ask(pools.engine, { method: 'GET', path: '/used' })) as Record<string, ServiceUse>)[model] ?? {
        maxAtOnce: 0,
        organizations: {},
      },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** Starts a script under this Node and waits for the first output that matches. */
function start(
  args: string[],
  wanted: RegExp,
  env: NodeJS.ProcessEnv,
): Promise<{ child: ChildProcess; found: string }> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  return new Promise((resolve, reject) => {
    const read = (line: string) => {
      const match = wanted.exec(line)
      if (match) resolve({ child, found: match[1]! })
    }
    createInterface({ input: child.stdout }).on('line', read)
    createInterface({ input: child.stderr }).on('line', read)
    child.once('exit', code => reject(new Error(`${args.join(' ')} exited (${code})`)))
  })
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  if (child.exitCode === null && child.kill('SIGKILL')) await ended
}
