import { z } from 'zod'
import type { Log } from '../log.ts'
import { mapMembers } from '../members.ts'
import { Bytes } from '../quantities.ts'
import type { Organization, OrganizationLimits } from '../store/store.ts'

/** What an organization may use. 0 is unlimited, except for spending. */
export interface EffectiveLimits {
  requestsPerMinute: number
  jobsPerMinute: number
  /** Input and output tokens of models. */
  tokensPerMinute: number
  /** Open requests that count as submissions of work. */
  concurrentRequests: number
  /** Jobs that wait or run. */
  pendingJobs: number
  /** Bytes of all its files. */
  storedBytes: number
  /** Files per calendar day in UTC. */
  uploadsPerDay: number
  /** Millionths of the currency unit per calendar month in UTC; null without a limit, 0 allows no spending. */
  monthlySpendLimit: number | null
  /** Whether its work never leaves this machine. */
  localOnly: boolean
}

/** The limits of the organizations of a plan, and their share of GPU time. */
export interface PlanFigures extends EffectiveLimits {
  /** From 1: while several organizations wait for the same model, one with share 4 gets four times as much as with 1. */
  share: number
}

const perPlan = 'the figure of the built-in plan of that name; else no limit'
const count = (unit: string, description: string, example: number) =>
  z
    .number()
    .int()
    .min(0)
    .optional()
    .meta({ description: `${description} 0 is no limit.`, unit, example, absent: perPlan })

/** A plan in infer.yaml. Without a key, a built-in plan keeps its figure, and any other plan has no limit. */
export const PlanSettings = z
  .strictObject({
    requests_per_minute: count(
      'requests per minute',
      'Requests that an organization may send in a minute, without submissions of work; also the burst.',
      1_200,
    ),
    jobs_per_minute: count(
      'requests per minute',
      'Submissions of work in a minute: each POST or PUT to /std/v1, /slug, /api/jobs and to executions of workflows.',
      200,
    ),
    tokens_per_minute: count(
      'tokens per minute',
      'Input and output tokens of text models in a minute, counted when a request or job ends.',
      200_000,
    ),
    concurrent_requests: count(
      'requests',
      'Submissions of work that may be open at a time: each counts until its answer or stream has ended.',
      20,
    ),
    pending_jobs: count('jobs', 'Stored jobs that may wait or run at a time.', 1_000),
    stored_bytes: Bytes.optional().meta({
      description: 'Size of all files of an organization together: uploads, inputs and results. 0 is no limit.',
      example: '50GiB',
      absent: perPlan,
    }),
    uploads_per_day: count('files', 'Files that an organization may upload on a calendar day in UTC.', 500),
    monthly_spend_limit: z.number().min(0).max(1e9).optional().meta({
      description:
        'Most that an organization may spend in a calendar month in UTC, in the currency of the prices. 0 allows no spending.',
      unit: 'currency units',
      example: 250,
      absent: 'no limit',
    }),
    local_only: z.boolean().optional().meta({
      description:
        'Work of the organizations never leaves this machine: they may not use `remote` models, neither by name nor as fallbacks.',
      example: true,
      absent: 'false',
    }),
    share: z.number().int().min(1).max(100).optional().meta({
      description:
        'Share of GPU time while several organizations wait for the same model: 4 gets four times as much as 1.',
      unit: 'shares',
      example: 3,
      absent: 'the figure of the built-in plan of that name; else 1',
    }),
  })
  .meta({ id: 'Plan' })
export type PlanSettings = z.output<typeof PlanSettings>

/** The limits of a caller whom nothing limits. */
export const noLimits: EffectiveLimits = {
  requestsPerMinute: 0,
  jobsPerMinute: 0,
  tokensPerMinute: 0,
  concurrentRequests: 0,
  pendingJobs: 0,
  storedBytes: 0,
  uploadsPerDay: 0,
  monthlySpendLimit: null,
  localOnly: false,
}
/** A plan without limits. */
const none: PlanFigures = { ...noLimits, share: 1 }

/**
 * The plans that exist without configuration. Requests and submissions per minute are those of the specification. The
 * shares are small, so that the free plan does not wait long behind the paid ones.
 */
export const builtInPlans: Readonly<Record<string, PlanFigures>> = {
  free: { ...none, requestsPerMinute: 60, jobsPerMinute: 10 },
  pro: { ...none, requestsPerMinute: 600, jobsPerMinute: 100, share: 2 },
  enterprise: { ...none, requestsPerMinute: 6_000, jobsPerMinute: 1_000, share: 4 },
}

/** The names of the counted figures in infer.yaml. */
const settingNames = {
  requestsPerMinute: 'requests_per_minute',
  jobsPerMinute: 'jobs_per_minute',
  tokensPerMinute: 'tokens_per_minute',
  concurrentRequests: 'concurrent_requests',
  pendingJobs: 'pending_jobs',
  storedBytes: 'stored_bytes',
  uploadsPerDay: 'uploads_per_day',
} as const

/** The plan of these settings; a built-in plan of the same name has the figures that the settings lack. */
export function planFigures(name: string, settings: PlanSettings): PlanFigures {
  const base = builtInPlans[name] ?? none
  const { monthly_spend_limit: spend } = settings
  return {
    ...mapMembers(settingNames, (setting, field) => settings[setting] ?? base[field]),
    monthlySpendLimit: spend === undefined ? base.monthlySpendLimit : Math.round(spend * 1e6),
    localOnly: settings.local_only ?? base.localOnly,
    share: settings.share ?? base.share,
  }
}

/** The effective limits of an organization: its own figures, else those of its plan. */
export const effectiveLimits = (plan: EffectiveLimits, own: OrganizationLimits): EffectiveLimits => ({
  requestsPerMinute: own.requestsPerMinute ?? plan.requestsPerMinute,
  jobsPerMinute: own.jobsPerMinute ?? plan.jobsPerMinute,
  tokensPerMinute: plan.tokensPerMinute,
  concurrentRequests: own.concurrentRequests ?? plan.concurrentRequests,
  pendingJobs: own.pendingJobs ?? plan.pendingJobs,
  storedBytes: own.storedBytes ?? plan.storedBytes,
  uploadsPerDay: own.uploadsPerDay ?? plan.uploadsPerDay,
  monthlySpendLimit: own.monthlySpendLimit ?? plan.monthlySpendLimit,
  localOnly: own.localOnly ?? plan.localOnly,
})

/**
 * The rate limits. A job submission is a POST or PUT to /std/v1/*, /slug/*, /api/jobs, or a workflow execution
 * endpoint; every other request is an API request. Taken literally from the specification; a retry counts as a
 * submission. Each route names its bucket.
 */
export type RateBucket = 'api' | 'jobs'

/**
 * The plans of this server: the built-in ones, changed and extended by `plans` in infer.yaml. An organization whose plan
 * does not exist has the limits of the smallest built-in plan until its plan is configured again; this is logged once.
 */
export function openPlans(options: {
  configured: Readonly<Record<string, PlanSettings>>
  /** Called when other plans apply. */
  changed?: () => void
  log: Log
}) {
  const { configured, changed = () => {}, log } = options
  let plans = read(configured)
  let reported = new Set<string>()

  function of(name: string): PlanFigures {
    const plan = plans.get(name)
    if (plan) return plan
    if (!reported.has(name)) {
      reported.add(name)
      log.warn("A plan does not exist, so its organizations have the limits of the plan 'free'", {
        plan: name,
        plans: [...plans.keys()].join(', '),
      })
    }
    return plans.get('free')!
  }

  return {
    of,
    /** Whether an organization can be given the plan. */
    has: (name: string): boolean => plans.has(name),
    /** The names of all plans, the built-in ones first. */
    names: (): string[] => [...plans.keys()],
    /** The limits of an organization: its own, else those of its plan. */
    limitsOf: (
      organization: Pick<Organization, 'plan' | (keyof EffectiveLimits & keyof Organization)>,
    ): EffectiveLimits => effectiveLimits(of(organization.plan), organization),
    /** The monthly spend limits of the plans that have one, millionths of the currency unit. */
    spendLimits: (): Record<string, number> =>
      Object.fromEntries(
        [...plans].flatMap(([name, { monthlySpendLimit: limit }]) => (limit === null ? [] : [[name, limit]])),
      ),
    /** Uses the plans of a changed configuration from now on. Returns the names of added, changed and removed plans. */
    replace(next: Readonly<Record<string, PlanSettings>>): string[] {
      const before = plans
      plans = read(next)
      reported = new Set()
      changed()
      return [...new Set([...before.keys(), ...plans.keys()])].filter(
        name => JSON.stringify(before.get(name)) !== JSON.stringify(plans.get(name)),
      )
    },
  }
}
export type Plans = ReturnType<typeof openPlans>

const read = (configured: Readonly<Record<string, PlanSettings>>): Map<string, PlanFigures> =>
  new Map([
    ...Object.entries(builtInPlans),
    ...Object.entries(configured).map(([name, settings]) => [name, planFigures(name, settings)] as const),
  ])
