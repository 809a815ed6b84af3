import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { entry, plainEnvironment, temporaryFolder } from './_infer.ts'

/** A server from source on its own port. Its one model is relayed to `upstream`. */
export function prepare(upstream = 'http://127.0.0.1:9'): string {
  const dataDir = temporaryFolder()
  writeFileSync(
    join(dataDir, 'infer.yaml'),
    `listen: 127.0.0.1:0\nlimits: {min_free_disk: 1MiB, ballast: 1MiB}\nmodels: [{id: far, engine: remote, url: '${upstream}/v1'}]\n`,
  )
  return dataDir
}

/** Starts the server of a data directory as a child process and waits until it is ready. */
export async function serve(dataDir: string, args: string[] = [], env: Record<string, string> = {}) {
  const child: ChildProcess = spawn(process.execPath, [entry, 'serve', '--data-dir', dataDir, ...args], {
    env: { ...plainEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let stdout = ''
  let stderr = ''
  const ended = once(child, 'close') as Promise<[number | null]>
  child.stdout!.on('data', piece => {
    stdout += String(piece)
    child.emit('said')
  })
  child.stderr!.on('data', piece => {
    stderr += String(piece)
    child.emit('said')
  })
  const until = async (met: () => boolean) => {
    while (!met()) {
      const over = await Promise.race([once(child, 'said').then(() => false), ended.then(() => true)])
      if (over && !met()) throw new Error(`The server ended: ${stderr}`)
    }
  }
  await until(() => stdout.includes('root-token'))
  return {
    child,
    until,
    url: /^ready (\S+)$/m.exec(stdout)![1]!,
    stdout: () => stdout,
    stderr: () => stderr,
    ends: async () => (await ended)[0],
  }
}
