import { connect } from 'node:net'

/**
 * The clients of the benchmark of event streams, in their own process: raw sockets that connect at the same time and read
 * everything. Prints the milliseconds until each has its snapshot, then continues to read until standard input ends. Usage:
 * open-streams.ts <port> <token> <count>
 */
const [port, token, count] = process.argv.slice(2) as [string, string, string]
const request = `GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`
const began = performance.now()
let without = Number(count)

for (let at = 0; at < Number(count); at++) {
  let head = ''
  const socket = connect({ port: Number(port), host: '127.0.0.1' }, () => socket.write(request))
  socket.on('data', (bytes: Buffer) => {
    if (head === 'seen') return
    head += bytes.toString('latin1')
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(`The server answered ${head.slice(0, 400)}`)
    if (!head.includes('event: snapshot')) return
    head = 'seen'
    if (--without === 0) console.log(performance.now() - began)
  })
  socket.on('close', () => {
    throw new Error('The server closed a stream')
  })
}
process.stdin.on('end', () => process.exit(0)).resume()
