import { setTimeout as delay } from 'node:timers/promises'
import { builtInPlans } from '../../../core/accounts/plans.ts'
import type { PlanName } from '../../../core/store/store.ts'
import type { Print } from './figures.ts'
import type { Platform } from './platform.ts'
import { type Kind, keepSending, send } from './requests.ts'

const serviceMs = 20
const outstanding = 16
const plans: PlanName[] = ['free', 'free', 'pro', 'pro', 'enterprise', 'enterprise', 'free', 'free']
const loads = { 'shares-of-chats': 'chats', 'shares-of-jobs': 'jobs', 'shares-of-both': 'both' } as const
export const shareModels = Object.keys(loads) as (keyof typeof loads)[]

/**
 * The time on the engine of eight organizations whose plans have shares 1:1:2:2:4:4:1:1 while all of them always have
 * requests waiting. Chats, jobs, and half of each run at once, on a model each; the last is for information, because
 * chats go before jobs.
 */
export async function measureShares(
  platform: Platform,
  { seconds, print }: { seconds: number; print: Print },
): Promise<void> {
  const organizations = await Promise.all(plans.map((plan, at) => platform.organization(`share-${at}`, plan)))
  const kindOf = (model: keyof typeof loads, at: number): Kind =>
    model === 'shares-of-both' ? (at % 2 === 0 ? 'chat' : 'job') : model === 'shares-of-chats' ? 'chat' : 'job'
  // The server reads the plan of an organization at its first request.
  for (const model of shareModels)
    await Promise.all(organizations.map((by, at) => send(kindOf(model, at), platform, { model, ms: serviceMs }, by)))
  const usedBy = async (model: string) => {
    const use = await platform.used(model)
    if (use.maxAtOnce > 1) throw new Error(`${use.maxAtOnce} requests ran at once on the one slot of ${model}`)
    return organizations.map(({ name }) => use.organizations[name]!.ms)
  }
  const before = await Promise.all(shareModels.map(usedBy))
  const began = performance.now()
  const sending = shareModels.flatMap(model =>
    organizations.map((by, at) => keepSending(kindOf(model, at), platform, { model, ms: serviceMs }, by, outstanding)),
  )
  await Promise.race([delay(seconds * 1000), ...sending.map(({ failed }) => failed)])
  const elapsed = performance.now() - began
  const after = await Promise.all(shareModels.map(usedBy))
  for (const one of sending) one.stop()

  const shares = plans.map(plan => builtInPlans[plan]!.share)
  const allShares = sum(shares)
  for (const [which, model] of shareModels.entries()) {
    const spent = after[which]!.map((ms, at) => ms - before[which]![at]!)
    const all = sum(spent)
    const parts = spent.map((ms, at) => ms / all / (shares[at]! / allShares))
    const worst = Math.max(...parts.map(part => Math.abs(part - 1)))
    const bar = model === 'shares-of-both' ? 'for information, chats go first' : 'bar 10 %'
    print(
      `shares ${shares.join(':')} with ${loads[model]}: engine time at most ${(worst * 100).toFixed(1)} % off the share after ` +
        `${(elapsed / 1000).toFixed(0)} s (${bar}); got ${parts.map(part => part.toFixed(2)).join(' ')} of it, engine busy ${((all / elapsed) * 100).toFixed(0)} %`,
      model === 'shares-of-both' || worst <= 0.1,
    )
  }
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0)
