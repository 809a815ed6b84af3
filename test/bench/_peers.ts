import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../gpu/launcher/address.ts'
import { findProgram } from '../../gpu/sandbox/program.ts'
import { folder, type Served, start } from './_gateway.ts'

/** What a peer is started with: its program, and a configuration that offers the engine as the model `bench`. */
interface Peer {
  program: string
  configuration: (engine: string) => object
  args: (config: string, port: number) => string[]
  /** By which it is known to answer. */
  health: string
}

const key = 'sk-bench'

const peers: readonly Peer[] = [
  {
    program: 'llama-swap',
    configuration: engine => ({
      logLevel: 'error',
      models: { bench: { cmd: 'sleep infinity', proxy: engine, checkEndpoint: 'none', concurrencyLimit: 1024 } },
    }),
    args: (config, port) => ['--config', config, '--listen', `127.0.0.1:${port}`],
    health: '/health',
  },
  {
    program: 'litellm',
    // Without a key it does not start.
    configuration: engine => ({
      general_settings: { master_key: key },
      model_list: [
        { model_name: 'bench', litellm_params: { model: 'openai/bench', api_base: `${engine}/v1`, api_key: 'none' } },
      ],
    }),
    args: (config, port) => ['--config', config, '--host', '127.0.0.1', '--port', String(port), '--telemetry', 'False'],
    health: '/health/liveliness',
  },
]

/** Starts the other gateways that are on the PATH, each in one process as it comes. Those that do not start are left out. */
export async function startPeers(enginePort: number): Promise<Record<string, Served>> {
  const started: Record<string, Served> = {}
  for (const { program, configuration, args, health } of peers) {
    const path = findProgram(program, process.env.PATH ?? '')
    if (path === undefined) continue
    const port = await freePort()
    const config = join(folder, `${program}.yaml`)
    writeFileSync(config, JSON.stringify(configuration(`http://127.0.0.1:${enginePort}`)))
    const { pid } = await start('/bin/sh', ['-c', 'echo begun; exec "$@"', 'sh', path, ...args(config, port)], /begun/)
    const answers = () =>
      fetch(`http://127.0.0.1:${port}${health}`).then(
        ({ ok }) => ok,
        () => false,
      )
    for (const until = Date.now() + 120_000; !(await answers()) && Date.now() < until; ) await delay(200)
    if (await answers()) started[program] = { pid, address: [port, '/v1/chat/completions', key] }
    else process.stderr.write(`${program} does not start\n`)
  }
  return started
}
