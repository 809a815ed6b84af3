import type { CallsElsewhere } from '../../core/jobs/call.ts'

/** The calls in gateway processes, by an owner that is opened later. */
export const callsElsewhere = (owner: () => CallsElsewhere | undefined): CallsElsewhere => ({
  known: () => owner()?.known(),
  find: (...call) => owner()?.find(...call),
  ended: (...call) => owner()?.ended(...call),
  cancel: (...call) => owner()?.cancel(...call) ?? false,
  cancelAll: (...calls) => owner()?.cancelAll(...calls) ?? 0,
  runningOf: id => owner()?.runningOf(id) ?? 0,
  open: () => owner()?.open() ?? 0,
  waiting: () => owner()?.waiting() ?? [],
})
