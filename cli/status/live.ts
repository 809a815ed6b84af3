import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '../client/client.ts'
import { failureOfThrown } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { drawStatus } from './draw.ts'
import { openScreen } from './screen.ts'
import { StatusSnapshot } from './status-snapshot.ts'

export const fetchStatus = (client: Client, signal?: AbortSignal): Promise<StatusSnapshot> =>
  client.ask({ method: 'GET', path: '/api/system/status', answer: StatusSnapshot, ...(signal ? { signal } : {}) })

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
