import { connect, type Socket } from 'node:net'

/**
 * The load client of the gateway benchmark, in its own process: raw sockets and prepared bytes, to use little processor
 * time. Prints one JSON object. Usage:
 * load.ts requests <port> <path> <token> <connections> <ms> | load.ts streams <port> <path> <token> <count> <ms>
 */
const [mode, port, path, token, count, ms] = process.argv.slice(2) as [string, string, string, string, string, string]
const stream = mode === 'streams'
const body = JSON.stringify({
  model: 'bench',
  messages: [{ role: 'user', content: 'A question of ordinary length, as people ask them every day.' }],
  max_tokens: 64,
  temperature: 0.7,
  ...(stream ? { stream: true } : {}),
})
const request = Buffer.from(
  `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
)

const percentile = (values: number[], at: number) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * at))] ?? 0

/** Sends requests one after another on a connection until it is stopped; counts and times the answers. */
function keepAsking(onAnswer: (ms: number) => void): { stop(): void } {
  let socket: Socket
  let sentAt = 0
  let held = Buffer.alloc(0)
  let stopped = false
  const ask = () => {
    sentAt = performance.now()
    socket.write(request)
  }
  const open = () => {
    socket = connect({ port: Number(port), host: '127.0.0.1', noDelay: true }, ask)
    socket.on('error', () => {})
    socket.on('close', () => stopped || open())
    socket.on('data', chunk => {
      held = held.length ? Buffer.concat([held, chunk]) : chunk
      const head = held.indexOf('\r\n\r\n')
      if (head < 0) return
      const text = held.toString('latin1', 0, head).toLowerCase()
      const length = /content-length: (\d+)/.exec(text)
      const whole = length ? head + 4 + Number(length[1]) : held.indexOf('\r\n0\r\n\r\n', head) + 7
      if (whole < head + 4 || held.length < whole) return
      if (!text.startsWith('http/1.1 200'))
        throw new Error(`answered ${text.slice(0, 200)} ${held.toString('utf8', head, head + 400)}`)
      held = Buffer.alloc(0)
      onAnswer(performance.now() - sentAt)
      if (stopped) socket.destroy()
      else if (!text.includes('connection: close')) ask()
    })
  }
  open()
  return { stop: () => (stopped = true) }
}

async function requests() {
  const latencies: number[] = []
  let counting = false
  const askers = Array.from({ length: Number(count) }, () => keepAsking(taken => counting && latencies.push(taken)))
  await new Promise(resolve => setTimeout(resolve, 700))
  counting = true
  console.error('counting')
  const from = performance.now()
  await new Promise(resolve => setTimeout(resolve, Number(ms)))
  counting = false
  const seconds = (performance.now() - from) / 1000
  for (const asker of askers) asker.stop()
  console.log(
    JSON.stringify({
      perSecond: latencies.length / seconds,
      p50: percentile(latencies, 0.5),
      p99: percentile(latencies, 0.99),
    }),
  )
  process.exit(0)
}

async function streams() {
  const gaps: number[] = []
  let chunks = 0
  let counting = false
  for (let i = 0; i < Number(count); i++) {
    let last = 0
    const socket = connect({ port: Number(port), host: '127.0.0.1', noDelay: true }, () => socket.write(request))
    socket.on('error', () => {})
    socket.on('data', chunk => {
      let at = chunk.indexOf('data: {')
      if (at < 0) return
      const now = performance.now()
      if (counting && last) gaps.push(now - last)
      last = now
      if (!counting) return
      while (at >= 0) {
        chunks++
        at = chunk.indexOf('data: {', at + 7)
      }
    })
    // The streams start spread over the first second, as callers do.
    await new Promise(resolve => setTimeout(resolve, 1000 / Number(count)))
  }
  await new Promise(resolve => setTimeout(resolve, 1000))
  counting = true
  console.error('counting')
  await new Promise(resolve => setTimeout(resolve, Number(ms)))
  counting = false
  console.log(
    JSON.stringify({
      chunks,
      gapP50: percentile(gaps, 0.5),
      gapP99: percentile(gaps, 0.99),
      gapMax: percentile(gaps, 1),
    }),
  )
  process.exit(0)
}

await (stream ? streams() : requests())
