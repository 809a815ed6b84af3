#!/usr/bin/env node
/**
 * The fake engine of test/fixtures/engine.ts on a fake card: claims its memory from the driver before anything else, and
 * fails as CUDA does if the card has too little. It holds the memory as long as its process lives.
 *   node engine.ts --driver SOCKET --mebibytes N --id NAME [flags of the fake engine]
 */
import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { connect } from 'node:net'
import { parseArgs } from 'node:util'
import type { Claim } from './cards.ts'

const text = { type: 'string' } as const
const { values } = parseArgs({ options: { driver: text, mebibytes: text, id: text }, strict: false })
const claim: Claim = {
  model: String(values.id),
  card: Number(process.env.CUDA_VISIBLE_DEVICES ?? 0),
  mebibytes: Number(values.mebibytes),
  pid: process.pid,
  namespace: readlinkSync('/proc/self/ns/pid'),
}
const driver = connect(String(values.driver))
driver.write(`${JSON.stringify(claim)}\n`)
const [answer] = await once(driver, 'data')
const [, free] = /^refused (\d+)/.exec(String(answer)) ?? []
if (free !== undefined) {
  process.stderr.write(
    `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ${claim.mebibytes} MiB. GPU ${claim.card} has ${free} MiB free.\n`,
  )
  process.exit(1)
}
await import('../fixtures/engine.ts')
