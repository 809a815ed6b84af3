import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deliverAll, seeded } from '../core/webhooks/_delivered.ts'

/**
 * Messages of webhooks to a receiver that fails half the time, each event being two messages of one job:
 * `webhooks.ts [jobs] [kills]`. Without kills and with so many.
 */
const [jobs = '5000', kills = '20'] = process.argv.slice(2)

for (const times of [0, Number(kills)]) {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-webhooks-'))
  const { seconds, messages, requests, acceptedTwice, repeated, recorded, orders, stored } = await deliverAll({
    dataDir,
    jobs: Number(jobs),
    kills: times,
    random: seeded(20_261_123),
  })
  const wrong = orders.filter(order => !'job.created job.cancelled'.startsWith(order)).length
  console.log(
    `${times} kills: ${messages} messages in ${seconds.toFixed(1)} s (${Math.round(messages / seconds)}/s), ${requests} requests, ` +
      `${stored.events - messages + stored.unfinished} lost, ${wrong} out of order, ${acceptedTwice} accepted twice, ` +
      `${repeated.length} of ${recorded} sent again after their success was recorded`,
  )
  rmSync(dataDir, { recursive: true, force: true })
}
