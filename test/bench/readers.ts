import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openBench, rssMb } from './server.ts'

/**
 * Measures the memory that clients use which open streams and never read, while the engine writes as fast as infer reads.
 * Compares with the memory after relaying to as many clients that read. Prints one line, which ends with MISSED when the
 * bar was missed; the exit code is then 1. Run: `npx node test/bench/readers.ts`, with `--count` clients.
 */
const { values } = parseArgs({ options: { count: { type: 'string', default: '200' } } })
const count = Number(values.count)
const barMb = 32
const bench = openBench()
try {
  const engine = await bench.script('fire-hose.ts', [], /^(\d+)$/)
  const { pid, port, rootToken } = await bench.serve({
    models: [
      { id: 'bench', engine: 'remote', url: `http://127.0.0.1:${engine.match}/v1`, concurrency: Math.max(512, count) },
    ],
    limits: { min_free_disk: 0, ballast: 0 },
  })
  const body = JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content: 'x' }] })
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${rootToken}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`
  const open = (read: boolean) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(head + body))
    if (read) socket.resume()
    else socket.pause()
    return socket.on('error', () => {})
  }
  // The start is a server that has relayed as many streams at full speed: its garbage is not what the clients hold.
  const readers = Array.from({ length: count }, () => open(true))
  await delay(5_000)
  for (const reader of readers) reader.destroy()
  await delay(2_000)
  const startMb = rssMb(pid)

  let maxMb = startMb
  const watch = setInterval(() => (maxMb = Math.max(maxMb, rssMb(pid))), 20)
  const sockets = Array.from({ length: count }, () => open(false))
  await delay(10_000)
  clearInterval(watch)
  const heldMb = rssMb(pid)
  for (const socket of sockets) socket.destroy()
  await delay(5_000)
  const missed = maxMb - startMb > barMb
  console.log(
    `readers: ${count} clients that never read for 10 s: RSS ${startMb.toFixed(0)} MB before, at most +${(maxMb - startMb).toFixed(0)} MB ` +
      `(bar ${barMb}), +${(heldMb - startMb).toFixed(0)} MB at the end, +${(rssMb(pid) - startMb).toFixed(0)} MB 5 s later${missed ? ' MISSED' : ''}`,
  )
  if (missed) process.exitCode = 1
} finally {
  bench.close()
}
