import type { Log } from '../log.ts'
import type { Organization } from '../store/store.ts'
import {
  builtInPlans,
  type EffectiveLimits,
  effectiveLimits,
  type PlanFigures,
  type PlanSettings,
  planFigures,
} from './plan.ts'

/**
 * The plans of this server: the built-in ones, changed and extended by `plans` in infer.yaml. An organization whose plan
 * does not exist has the limits of the smallest built-in plan until its plan is configured again; this is logged once.
 */
export function openPlans({
  configured,
  changed = () => {},
  log,
}: {
  configured: Readonly<Record<string, PlanSettings>>
  /** Called when other plans apply. */
  changed?: () => void
  log: Log
}) {
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
        [...plans].flatMap(([name, { monthlySpendLimit }]) =>
          monthlySpendLimit === null ? [] : [[name, monthlySpendLimit]],
        ),
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
