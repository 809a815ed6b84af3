import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { openBench, rssMb } from './server.ts'

/**
 * Uploads files slowly, all at the same time, and asks `/livez` meanwhile: the memory of the server must stay flat, and
 * other requests must not wait. Usage: uploads.ts <clients> <MB each> <seconds>
 */
const [clients = 40, mb = 100, seconds = 20] = process.argv.slice(2).map(Number)
const pieceBytes = 256 << 10
const pieces = (mb << 20) / pieceBytes
const piece = Buffer.alloc(pieceBytes, 1)

const bench = openBench()
try {
  const { pid, port, rootToken } = await bench.serve({ models: [], limits: { min_free_disk: 0, ballast: 0 } })
  const post = (path: string, headers: Record<string, string>) =>
    request({ port, method: 'POST', path, headers: { authorization: `Bearer ${rootToken}`, ...headers } })

  async function upload(): Promise<number> {
    const sending = post('/v1/files', { 'content-type': 'multipart/form-data; boundary=b' })
    const answered = once(sending, 'response') as Promise<[{ statusCode: number; resume(): void }]>
    sending.write('--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n')
    sending.write('--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n')
    const began = performance.now()
    for (let at = 0; at < pieces; at++) {
      const early = began + (at / pieces) * seconds * 1000 - performance.now()
      if (early > 0) await delay(early)
      if (!sending.write(piece)) await once(sending, 'drain')
    }
    sending.end('\r\n--b--\r\n')
    const [response] = await answered
    response.resume()
    return response.statusCode
  }

  await delay(2_000)
  const before = rssMb(pid)
  let peak = before
  const waits: number[] = []
  let done = false
  const watching = (async () => {
    while (!done) {
      const began = performance.now()
      await (await fetch(`http://127.0.0.1:${port}/livez`)).arrayBuffer()
      waits.push(performance.now() - began)
      peak = Math.max(peak, rssMb(pid))
      await delay(50)
    }
  })()
  const began = performance.now()
  const statuses = await Promise.all(Array.from({ length: clients }, upload))
  const took = (performance.now() - began) / 1000
  done = true
  await watching
  waits.sort((a, b) => a - b)
  const stored = statuses.filter(status => status === 200).length
  console.log(
    `${clients} uploads of ${mb} MB in ${took.toFixed(1)} s: ${stored} stored; RSS ${before.toFixed(0)} MiB before, ` +
      `${peak.toFixed(0)} MiB at most; /livez p99 ${waits[Math.floor(waits.length * 0.99)]!.toFixed(1)} ms, ` +
      `longest ${waits.at(-1)!.toFixed(1)} ms`,
  )
} finally {
  bench.close()
}
