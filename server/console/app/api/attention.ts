import { modelHref } from '../components/addresses.ts'
import { limitState, percentUsed } from '../components/limit-use.ts'
import { attentionText as text } from '../text/attention.ts'
import { usageText } from '../text/usage.ts'
import type { Schema } from './schema.ts'

/** Something that a person should do something about, with the page where that is done. */
export interface Attention {
  id: string
  /** `bad`: something does not work now. */
  kind: 'bad' | 'warning'
  what: string
  /** Why, and what to do, as the server says it; empty if there is no more to say. */
  why: string
  /** The model whose engine failed: its log says more. */
  model?: string
  href: string
  /** Names the way there. */
  action: string
}

/** What the API says about it; what the session may not read is undefined. */
export interface AttentionFacts {
  models?:
    | readonly Pick<Schema<'ModelLoad'>, 'model_id' | 'status' | 'reason' | 'waiting' | 'engine_failures'>[]
    | undefined
  configuration?: { fault: string | null; restart_for: readonly string[] } | undefined
  savedFault?: string | null | undefined
  peers?: readonly Pick<Schema<'PeerStatus'>, 'name' | 'models' | 'fault'>[] | undefined
  limits?: readonly Schema<'LimitUse'>[] | undefined
  spend?: Pick<Schema<'SpendUse'>, 'organization' | 'token'> | undefined
  /** The findings of the checks that this browser has run. */
  findings?: Schema<'DoctorReport'>['findings'] | undefined
}

/** Limits that a person can do something about; all others are whole again within a minute. */
const lasting: readonly Schema<'LimitUse'>['name'][] = ['stored_bytes', 'uploads_per_day', 'pending_jobs']
/** Failures after which an engine that works now needs attention: fewer heal by themselves. */
const manyFailures = 3

/** Returns what needs attention, the worst first. */
export const attentionOf = (facts: AttentionFacts): Attention[] =>
  [...ofConfiguration(facts), ...ofPeers(facts), ...ofModels(facts), ...ofLimits(facts), ...ofChecks(facts)].toSorted(
    (a, b) => Number(b.kind === 'bad') - Number(a.kind === 'bad'),
  )

function ofConfiguration({ configuration, savedFault }: AttentionFacts): Attention[] {
  const here = { href: '/system/configuration', action: text.configuration }
  const all: Attention[] = []
  if (configuration?.fault)
    all.push({ id: 'configuration', kind: 'bad', what: text.fault, why: configuration.fault, ...here })
  if (configuration?.restart_for.length)
    all.push({
      id: 'restart',
      kind: 'warning',
      what: text.restart(configuration.restart_for.join(', ')),
      why: '',
      ...here,
    })
  if (savedFault) all.push({ id: 'conversations', kind: 'warning', what: text.conversations, why: savedFault, ...here })
  return all
}

/** Whether a model needs attention: it cannot serve, or its engine fails again and again. */
export const isFailing = ({
  status,
  engine_failures: count,
}: Pick<Schema<'ModelLoad'>, 'status' | 'engine_failures'>) => status === 'unavailable' || count >= manyFailures

const ofPeers = ({ peers = [] }: AttentionFacts): Attention[] =>
  peers.flatMap(({ name, models, fault }) =>
    fault === null
      ? []
      : {
          id: `peer ${name}`,
          kind: 'bad',
          what: text.peer(name, models),
          why: fault,
          href: '/models',
          action: text.models,
        },
  )

/** Models that need attention. Those of a peer are not named one by one for what is wrong with the peer. */
const ofModels = ({ models = [], peers = [] }: AttentionFacts): Attention[] =>
  models
    .filter(model => isFailing(model) && !peers.some(({ fault }) => fault !== null && fault === model.reason))
    .map(({ model_id: id, status, reason, waiting, engine_failures: count }) => ({
      id: `model ${id}`,
      kind: status === 'unavailable' ? 'bad' : 'warning',
      what: count > 0 ? text.engineFailed(id, count) : text.unavailable(id),
      model: id,
      why: [reason ?? [], waiting > 0 ? text.waiting(waiting) : []].flat().join(' '),
      href: modelHref(id, '?part=log'),
      action: text.log,
    }))

function ofLimits({ limits = [], spend }: AttentionFacts): Attention[] {
  const spends = (['organization', 'token'] as const).flatMap(of => {
    const { monthly_limit: limit, spent, held } = spend?.[of] ?? { monthly_limit: null, spent: 0, held: 0 }
    return limit === null ? [] : { name: text.spending, of, used: spent + held, limit }
  })
  const others = limits
    .filter(({ name }) => lasting.includes(name))
    .map(({ name, limit_of: of, limit, remaining }) => ({
      name: usageText.limits.names[name],
      of,
      used: limit - remaining,
      limit,
    }))
  return [...spends, ...others]
    .filter(({ used, limit }) => limitState(used, limit) !== 'free')
    .map(({ name, of, used, limit }) => ({
      id: `limit ${of} ${name}`,
      kind: limitState(used, limit) === 'reached' ? 'bad' : 'warning',
      what: text.limit(name, of, percentUsed(used, limit)),
      why: '',
      href: '/usage',
      action: text.usage,
    }))
}

const ofChecks = ({ findings = [] }: AttentionFacts): Attention[] =>
  findings
    .filter(({ state }) => state !== 'fine')
    .map(({ name, state, detail, advice }) => ({
      id: `check ${name}`,
      kind: state === 'broken' ? 'bad' : 'warning',
      what: text.check(name),
      why: [detail, advice ?? []].flat().join(' '),
      href: '/system/checks',
      action: text.checks,
    }))
