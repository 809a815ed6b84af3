import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { findPortHolder, listeningInodes } from '../../core/port-holder.ts'

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0 0 10 0
   1: 0100007F:2253 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4343 1 0 100 0 0 10 0
   2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4444 1 0 100 0 0 10 0
`

test('only a socket that listens on the port counts', () => {
  expect(listeningInodes(table, 8787)).toEqual(['socket:[4242]'])
  expect(listeningInodes(table, 80)).toEqual(['socket:[4444]'])
  expect(listeningInodes(table, 81)).toEqual([])
  expect(listeningInodes('', 80)).toEqual([])
})

test.each(['127.0.0.1', '::1', '0.0.0.0'])('the process that listens on %s is found', async host => {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  expect(findPortHolder(port)).toMatchObject({ pid: process.pid, dataDir: undefined })
})

test('without a listener no process is found', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  expect(findPortHolder(port)).toBeUndefined()
})
