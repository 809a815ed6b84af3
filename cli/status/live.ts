import { setTimeout as wait } from 'node:timers/promises'
import { type Api, type Client, dataOf } from '../client/client.ts'
import { orOwnLimits } from '../client/refusal.ts'
import { failureOfThrown } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { drawStatus } from './draw.ts'

/** Reads the status. Older servers send neither the waiting requests nor the limits. */
export async function fetchStatus(client: Client, signal?: AbortSignal): Promise<Api['SystemStatus']> {
  const status = await orOwnLimits(dataOf(client.api.GET('/api/system/status', { signal })))
  return { ...status, waiting: status.waiting ?? [], limits: status.limits ?? [] }
}

/**
 * Shows the status until q, Escape or Ctrl-C. When the connection is lost, shows the error and connects again. Throws
 * when the first request fails.
 */
export async function watchStatus(terminal: Terminal, connect: () => Client, everyMs: number): Promise<void> {
  let client = connect()
  let snapshot = await fetchStatus(client)
  let trouble: string | undefined
  const leave = new AbortController()
  const stop = () => leave.abort()
  const screen = openScreen(terminal, key => {
    if (key === 'q' || key === 'Q' || key === '\u0003' || key === '\u001b') stop()
  })
  const draw = () => {
    const { width, height } = screen.room()
    const foot = trouble === undefined ? terminal.paint.faint('q quits') : terminal.paint.bad(trouble.slice(0, width))
    screen.show([...drawStatus(snapshot, client.url, { width, height: height - 2 }, terminal.paint), '', foot])
  }
  const resized = () => {
    screen.forget()
    draw()
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  terminal.stdout.on('resize', resized)
  try {
    while (!leave.signal.aborted) {
      draw()
      const startedAt = performance.now()
      await wait(Math.max(0, everyMs - (performance.now() - startedAt)), undefined, { signal: leave.signal })
      try {
        snapshot = await fetchStatus(client, AbortSignal.any([leave.signal, AbortSignal.timeout(10_000)]))
        trouble = undefined
      } catch (thrown) {
        trouble = failureOfThrown(thrown).message
        client = reconnect(connect, client)
      }
    }
  } catch (thrown) {
    if (!leave.signal.aborted) throw thrown
  } finally {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
    terminal.stdout.off('resize', resized)
    screen.close()
  }
  // Leaves the last status in the terminal's scrollback.
  const room = { width: Math.max(20, terminal.stdout.columns || 80), height: 0 }
  terminal.print(drawStatus(snapshot, client.url, room, terminal.paint).join('\n'))
}

/** Finds the server again, because a restarted server may have another address. */
function reconnect(connect: () => Client, before: Client): Client {
  try {
    return connect()
  } catch {
    return before
  }
}

/**
 * Uses the terminal's alternate screen, as `top` does; the previous content reappears afterwards. Each frame is one
 * write over the previous one, so that nothing flickers. Restores the terminal however the program ends.
 */
function openScreen({ stdin, stdout }: Terminal, onKey: (key: string) => void) {
  const raw = stdin.isTTY
  let shown = ''
  let open = true

  const read = (bytes: Buffer) => {
    for (const key of bytes.toString('utf8')) onKey(key)
  }
  if (raw) {
    stdin.setRawMode(true)
    stdin.on('data', read)
    stdin.resume()
  }
  stdout.write('\u001b[?1049h\u001b[?25l\u001b[2J')
  process.once('exit', close)

  function close(): void {
    if (!open) return
    open = false
    process.off('exit', close)
    stdout.write('\u001b[?25h\u001b[?1049l')
    if (!raw) return
    stdin.off('data', read)
    stdin.setRawMode(false)
    stdin.pause()
  }

  return {
    /** The last column stays empty, because erasing the rest of a line would remove a character in it. */
    room: () => ({ width: Math.max(20, (stdout.columns || 80) - 1), height: Math.max(5, stdout.rows || 24) }),
    /** Shows only these lines. Does not write an unchanged frame again. */
    show(lines: readonly string[]): void {
      const frame = lines.join('\u001b[K\r\n')
      if (!open || frame === shown) return
      shown = frame
      // Synchronized output: a terminal that supports it draws nothing between the two sequences.
      stdout.write(`\u001b[?2026h\u001b[H${frame}\u001b[K\u001b[J\u001b[?2026l`)
    },
    /** Makes the next frame complete, after a change of the terminal's size. */
    forget(): void {
      shown = ''
    },
    close,
  }
}
