import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/**
 * This machine as a read-only lower layer: programs inside write to a layer in memory, which is removed after the test.
 * So a package can be installed on a developer's machine without a trace.
 */
export type Layer = Exclude<Awaited<ReturnType<typeof openLayer>>, string>

const mounts = (folder: string): string => `
set -e
mount -t tmpfs tmpfs ${folder}
mkdir ${folder}/upper ${folder}/work ${folder}/root
mount -t overlay overlay -o lowerdir=/,upperdir=${folder}/upper,workdir=${folder}/work ${folder}/root
mount -t proc proc ${folder}/root/proc
mount --rbind /dev ${folder}/root/dev
mount -t tmpfs tmpfs ${folder}/root/run
echo ready
exec cat`

/** Opens the layer. Returns the reason as a sentence where this machine does not support one. */
export async function openLayer() {
  if (process.getuid?.() !== 0) return 'only root can mount a layer'
  const folder = mkdtempSync(join(tmpdir(), 'infer-layer-'))
  const holder = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', mounts(folder)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const said: string[] = []
  holder.stderr.on('data', piece => said.push(String(piece)))
  holder.on('error', thrown => said.push(thrown.message))
  const ended = once(holder, 'close').catch(() => {})
  const [first] = (await Promise.race([once(createInterface(holder.stdout), 'line'), ended.then(() => [])])) ?? []
  if (first !== 'ready') {
    await ended
    rmSync(folder, { recursive: true, force: true })
    return `a layer over / could not be mounted: ${said.join('').trim()}`
  }

  const enter = ['--target', String(holder.pid), '--mount', '--']
  const inside = (argv: readonly string[]) => [...enter, 'chroot', join(folder, 'root'), ...argv]
  const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8' }
  const outside = (argv: readonly string[]) => {
    const { status, stdout, stderr, error } = spawnSync('nsenter', [...enter, ...argv], { encoding: 'utf8' })
    if (status !== 0) throw error ?? new Error(`${argv.join(' ')} ended with ${status}: ${stderr}`)
    return stdout
  }

  return {
    /** Copies a file of this machine into the layer. */
    copy: (from: string, to: string): void => void outside(['cp', from, join(folder, 'root', to)]),
    /** Runs a program inside until it exits. */
    run: (argv: readonly string[], env: Record<string, string> = {}) => {
      const { status, stdout, stderr } = spawnSync('nsenter', inside(argv), {
        encoding: 'utf8',
        env: { ...environment, ...env },
      })
      return { code: status, out: stdout, err: stderr }
    },
    /** Starts a program inside. */
    start: (argv: readonly string[], env: Record<string, string> = {}): ChildProcess =>
      spawn('nsenter', inside(argv), { env: { ...environment, ...env }, stdio: ['ignore', 'pipe', 'pipe'] }),
    /** Paths that were written, deleted or changed since the layer was opened, without those in `/run`. */
    changes: (): string[] =>
      outside([
        'sh',
        '-c',
        `cd ${folder}/upper && find . -mindepth 1 ! -type d -exec sh -c 'for path; do cmp -s "$path" "/$path" || echo "$path"; done' sh {} + ; find . -mindepth 1 -type d -exec sh -c 'for path; do [ -d "/$path" ] || echo "$path"; done' sh {} +`,
      ])
        .split('\n')
        .filter(line => line !== '')
        .map(line => line.slice(1))
        .sort(),
    async [Symbol.asyncDispose]() {
      holder.stdin.end()
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
