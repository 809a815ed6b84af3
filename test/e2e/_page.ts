import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import type { Block } from '../_blocks.ts'
import { endProcessesWith, lastingPort, until } from './_home.ts'

const executable = resolve('build/infer')
const packages = resolve('node_modules')

/** Whether a program is installed. */
const has = (program: string): boolean => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0

/**
 * A clean home in which one shell runs the blocks of a page in their order, as a reader would: with the tools of this
 * machine and the packed executable as `infer`. In all blocks `127.0.0.1:8787` is replaced by a free port.
 */
export async function openPage() {
  if (!existsSync(executable)) throw new Error('build/infer is missing. Run: npm run pack')
  const home = mkdtempSync(join(tmpdir(), 'infer-page-'))
  const port = await lastingPort()
  const programs = join(home, '.programs')
  mkdirSync(programs)
  symlinkSync(process.execPath, join(programs, 'node'))
  symlinkSync(packages, join(home, 'node_modules'))
  writeFileSync(
    join(programs, 'infer'),
    `#!/bin/sh
case "$1" in serve) shift; exec '${executable}' serve --listen 127.0.0.1:${port} "$@";; esac
exec '${executable}' "$@"
`,
  )
  chmodSync(join(programs, 'infer'), 0o755)
  const ready = `http://127.0.0.1:${port}/readyz`

  // Reads names of scripts from descriptor 4 and reports each on 3. A command that fails ends the shell.
  const loop = 'set -euo pipefail; while read -r script <&4; do source "$script" </dev/null; echo done >&3; done'
  const shell: ChildProcess = spawn('bash', ['--noprofile', '--norc', '-c', loop], {
    cwd: home,
    env: { HOME: home, PATH: `${programs}:${process.env.PATH ?? ''}`, LANG: 'C.UTF-8', TERM: 'dumb' },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [shell.stdout!, shell.stderr!]) stream.on('data', piece => (output += String(piece)))
  const ended = once(shell, 'exit') as Promise<[number | null]>
  let scripts = 0

  async function source(text: string, at: string): Promise<void> {
    const path = join(home, '.programs', `block-${++scripts}`)
    writeFileSync(path, `${text}\n`)
    const answered = once(shell.stdio[3]!, 'data')
    ;(shell.stdio[4] as Writable).write(`${path}\n`)
    const over = await Promise.race([answered.then(() => undefined), ended])
    if (over) throw new Error(`${at} failed with ${String(over[0])}:\n${output.slice(-3000)}`)
  }

  /** Runs a script; after each line that starts a server it waits until the server is ready. */
  async function runShell(text: string, at: string): Promise<void> {
    const [, upTo, rest] = /^([^]*?^infer serve\b[^\n]*&[^\n]*\n?)([^]*)$/m.exec(text) ?? []
    if (upTo === undefined || rest === undefined) return source(text, at)
    await source(upTo, at)
    const isReady = () =>
      fetch(ready).then(
        ({ ok }) => ok,
        () => false,
      )
    await until(`a server that is ready (${at})`, isReady).catch((cause: unknown) => {
      throw new Error(`${(cause as Error).message}\n${output.slice(-3000)}`, { cause })
    })
    await runShell(rest, at)
  }

  return {
    home,
    /**
     * Runs a block, or writes it to the file that it names. Resolves with its output, or with the reason why it was
     * skipped.
     */
    async run({ language, marks, text, at }: Block): Promise<{ skipped?: string; output: string }> {
      output = ''
      const local = text.replaceAll(/\b(127\.0\.0\.1|localhost):8787\b/g, `$1:${port}`)
      const file = marks.find(mark => mark.startsWith('file='))?.slice('file='.length)
      if (file !== undefined) writeFileSync(join(home, file), `${text}\n`)
      if (!marks.includes('test')) return { skipped: 'not marked', output }
      const missing = marks.slice(marks.indexOf('test') + 1).filter(mark => !mark.includes('=') && !has(mark))
      if (missing.length > 0) return { skipped: `${missing.join(', ')} is not installed`, output }
      if (language === 'sh') await runShell(local, at)
      else if (language === 'ts' || language === 'python') {
        const path = join(home, `block-${scripts + 1}.${language === 'ts' ? 'mts' : 'py'}`)
        writeFileSync(path, `${local}\n`)
        const modules = [...local.matchAll(/^(?:import|from) ([a-z_]\w*)/gm)].map(([, name]) => name!)
        if (language === 'python' && spawnSync('python3', ['-c', `import ${modules.join(', ')}`]).status !== 0)
          return { skipped: `python3 has no ${modules.join(', ')}`, output }
        await source(
          language === 'ts' ? `node --disable-warning=ExperimentalWarning '${path}'` : `python3 '${path}'`,
          at,
        )
      } else throw new Error(`${at}: a block of ${language} cannot be run`)
      return { output }
    },
    async [Symbol.asyncDispose]() {
      shell.kill('SIGKILL')
      await endProcessesWith(home)
      rmSync(home, { recursive: true, force: true })
    },
  }
}
