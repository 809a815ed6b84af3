import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { shellWord } from '../../cli/serve/try-next.ts'
import { entry, plainEnvironment } from './_infer.ts'

/** Whether this machine has `script`, which gives a child process a terminal. */
export const hasTerminal = spawnSync('script', ['--version']).status === 0

/** The command line in its own terminal, as a person sees it and types into it. */
export function inTerminal(args: readonly string[], env: Record<string, string> = {}) {
  const line = [process.execPath, entry, ...args].map(shellWord).join(' ')
  const child: ChildProcess = spawn('script', ['-qfec', `stty cols 200; exec ${line}`, '/dev/null'], {
    env: { ...plainEnvironment(), TERM: 'xterm', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let shown = ''
  let read = 0
  const ended = once(child, 'close') as Promise<[number]>
  child.stdout!.on('data', piece => {
    shown += String(piece)
    child.emit('shown')
  })

  return {
    /** Waits until the text appears after the output that was read before. */
    async sees(text: string): Promise<void> {
      for (;;) {
        const at = shown.indexOf(text, read)
        if (at >= 0) {
          read = at + text.length
          return
        }
        const [event] = await Promise.race([once(child, 'shown').then(() => ['shown']), ended.then(() => ['ended'])])
        if (event === 'ended' && shown.indexOf(text, read) < 0)
          throw new Error(`'${text}' was not shown. Shown was: ${JSON.stringify(shown.slice(read))}`)
      }
    },
    types(text: string): void {
      child.stdin!.write(text)
    },
    everything: (): string => shown,
    /** Closes the terminal as closing its window would: every process in it gets SIGHUP. */
    closes(): void {
      child.kill('SIGKILL')
    },
    /** Waits until the process exits; resolves with the exit code. */
    async ends(): Promise<number> {
      return (await ended)[0]
    },
  }
}
