import { z } from 'zod'
import { ModelBenchmark } from '../../core/models/benchmark.ts'
import { plannedFallback } from '../../core/models/fallbacks.ts'
import type { ModelName } from '../../core/models/model-names.ts'
import type { ModelPlan as Plan } from '../../core/models/model-plan.ts'
import { scheduledActions } from '../../core/models/model-schedule.ts'
import { fallbackReasons } from '../../core/schemas/fallback-reason.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableString,
  number,
  object,
  oneOf,
  string,
} from '../../core/schemas/fields.ts'
import { LeftDevice } from './device-status.ts'
import { EnginePlacement, placementView } from './engine-placement.ts'
import { planNames, planNamesView } from './plan-names.ts'
import { seconds } from './view-of.ts'

const modelId = nullableString('Id of its model; null if the token may not use that model.')
const engineId = nullableString('Id of the engine; null for memory that is reserved for a model that is loaded first.')

export const ModelPlan = namedObject('ModelPlan', 'What happens if a request for a model comes now.', {
  object: z.literal('model.plan'),
  model_id: string('Id of the model.'),
  ...planNames,
  status: oneOf(
    '`ready`: it gets a slot of a loaded engine. `loading`: the model is being loaded. `load`: it loads the model. `wait`: it waits until the model can be loaded. `refused`: it is refused.',
    ['ready', 'loading', 'load', 'wait', 'refused'],
  ),
  detail: string('What happens, as a sentence. If it waits, that of `waiting_for` of the requests that wait.'),
  advice: nullableString('What lets it run sooner, as sentences; null if nothing needs to be done.'),
  eta_seconds: nullableInteger('Expected seconds until it begins; null if it is refused.'),
  evict: array(
    'Engines that are unloaded for it, busy ones included.',
    z.object({
      engine_id: string('Id of the engine.'),
      model_id: modelId,
      memory_bytes: integer('Bytes that this frees on all devices.'),
      reload_ms: integer('Milliseconds until its model would be loaded again.'),
      why: string('What the engine does now, as a sentence.'),
    }),
  ),
  waits_for: array(
    'What it waits for: the busy ones of these engines, and reserved memory.',
    z.object({
      engine_id: engineId,
      model_id: modelId,
      why: string('Why it cannot be unloaded now, as a sentence.'),
    }),
  ),
  devices: array(
    'The GPUs, or the CPU, whichever the model needs.',
    z.object({
      id: string('Id of the device.'),
      memory_bytes: integer('Bytes for models: without a reserve, and without what other programs use.'),
      free_bytes: integer('Bytes that no engine uses or has reserved.'),
      fault: nullableString('Why it is not used for now, as a sentence; null if it is.'),
      paused: nullableString('Until when it is given to other programs, as a sentence; null if it is not.'),
      needed_bytes: integer('Bytes that the model would use; 0 on devices that it does not get.'),
      engines: array(
        'Who is on it now.',
        z.object({
          engine_id: engineId,
          model_id: modelId,
          memory_bytes: integer('Bytes on this device.'),
          evicted: boolean('Whether it is unloaded for the request.'),
          kept_loaded: boolean('Whether `replicas.min` keeps it loaded.'),
        }),
      ),
    }),
  ),
  placement: nullable(EnginePlacement, 'Where it runs, or would run; null if it is refused.'),
  left_devices: array('GPUs that are left to others.', LeftDevice),
  figures: object('The figures of the decision.', {
    memory_bytes: integer('Bytes that the model needs on all devices.'),
    memory_from: oneOf(
      '`configured`: `memory` in `infer.yaml`. `estimated`: from its files. `measured`: of its engine. `unknown`: whole devices, or a quarter of the memory of the machine.',
      ['configured', 'estimated', 'measured', 'unknown'],
    ),
    load_ms: integer('Milliseconds that a load takes.'),
    load_ms_from: oneOf(
      '`measured`: its earlier loads. `other_models`: the speed at which others were loaded. `size`: 1 GB a second.',
      ['measured', 'other_models', 'size'],
    ),
    run_ms: nullableInteger('Average milliseconds of its requests; null before the first.'),
    slots: integer('How many requests one engine serves at a time.'),
    order_bound: number('`order_bound`: how many loads a request may be behind the order of arrival.'),
  }),
  threads: nullable(
    z.object({
      count: integer('Threads with which its engine computes on the processor.'),
      reason: string('Why so many, as a part of a sentence.'),
    }),
    'Null if it is refused, computes on GPUs alone, or chooses its threads itself.',
  ),
  parking: nullableString(
    'What happens to its engine when another model needs the memory, and why, in sentences. Null if it is refused, or its engine cannot be parked at all.',
  ),
  upcoming: nullableString(
    'What running executions of workflows that need it next mean for it, as a sentence: it is loaded ahead, or kept. Null if none does.',
  ),
  schedule: array(
    'What `schedule` of the model does.',
    z.object({
      action: oneOf('What it does.', scheduledActions),
      next_at: integer('Unix seconds at which it does that next.'),
      until: nullableInteger('Unix seconds until which `pin` keeps the model loaded; null while it does not.'),
    }),
  ),
  benchmark: nullable(ModelBenchmark, 'The newest benchmark of the model with its current settings; null before any.'),
  fallback: nullable(
    z.object({
      model_id: string('Id of the model.'),
      reason: oneOf('Why, as in `fallback_reason` of a job.', fallbackReasons),
      detail: string('The same as a sentence.'),
    }),
    'The model that would answer in its place, by `fallbacks`; null if it would answer itself.',
  ),
  adapters: array(
    'The LoRA adapters of the model that are switched on; their memory is part of `figures.memory_bytes`.',
    z.object({
      model_id: string('Id of the adapter.'),
      bytes: nullableInteger('Bytes of its tensors; null if its files are not on this machine.'),
      fault: nullableString('Why its requests fail, as a sentence; null if nothing is known against it.'),
    }),
  ),
  saved_conversations: nullable(
    z.object({
      conversations: integer('How many are saved.'),
      bytes: integer('Bytes of main memory that they use.'),
      limit_bytes: integer('Bytes that those of all models may use.'),
      age_seconds: integer('Seconds after its last use at which a conversation is deleted.'),
      disk: boolean('Whether encrypted copies are on disk, so that they outlive a restart of the machine.'),
    }),
    'Conversations whose memory is saved: their next request computes only what is new. Null if none are.',
  ),
  saved_detail: nullableString(
    'Where conversations are saved, or why none are, as a sentence; null for models without conversations.',
  ),
  affinity: nullable(
    z.object({
      engines: integer('How many engines it has at most.'),
      detail: string('How a prompt chooses among them, as a sentence.'),
    }),
    'Null for a model with one engine at most, or without prompts.',
  ),
  guessed_tokens: nullable(
    z.object({
      tokens: integer('Tokens that are guessed at once, at most.'),
      draft_model: nullableString(
        'The model that guesses them; null where they are guessed from what the text repeats.',
      ),
      draft_bytes: nullableInteger(
        'Bytes of its weights and its cache, part of `figures.memory_bytes`; null where they are not known, and without such a model.',
      ),
      detail: string('The same as sentences.'),
    }),
    'By `speculative` of the model; null where no tokens are guessed.',
  ),
})

/**
 * Returns the plan of a request under this name for callers. `names`: those that they may use; `allowed`: whether they may know
 * of a model; `usable`: whether a model may answer them, as the base of an allowed profile may not.
 */
export function modelPlanView(
  plan: Plan,
  requested: ModelName,
  {
    names,
    allowed,
    usable,
  }: { names: readonly ModelName[]; allowed: (modelId: string) => boolean; usable: (modelId: string) => boolean },
): z.input<typeof ModelPlan> {
  const known = (id: string) => (allowed(id) ? id : null)
  const { figures, guesses, saved } = plan
  const { id, fallbacks } = requested.model
  const fallback = plannedFallback({ id, fallbacks: fallbacks?.filter(one => usable(one.model)) }, plan)
  return {
    object: 'model.plan',
    model_id: plan.modelId,
    ...planNamesView(requested, names, usable),
    status: plan.status,
    detail: plan.detail,
    advice: plan.advice,
    eta_seconds: plan.etaMs === null ? null : Math.ceil(plan.etaMs / 1000),
    evict: plan.evict.map(one => ({
      engine_id: one.engineId,
      model_id: known(one.modelId),
      memory_bytes: Math.round(one.bytes),
      reload_ms: Math.round(one.reloadMs),
      why: one.why,
    })),
    waits_for: plan.waitsFor.map(one => ({
      engine_id: one.engineId,
      model_id: known(one.modelId),
      why: one.why,
    })),
    devices: plan.devices.map(one => ({
      id: one.id,
      memory_bytes: Math.round(one.capacityBytes),
      free_bytes: Math.round(one.freeBytes),
      fault: one.fault,
      paused: one.paused,
      needed_bytes: Math.round(one.neededBytes),
      engines: one.engines.map(engine => ({
        engine_id: engine.engineId,
        model_id: known(engine.modelId),
        memory_bytes: Math.round(engine.bytes),
        evicted: engine.evicted,
        kept_loaded: engine.keptLoaded,
      })),
    })),
    adapters: plan.adapters
      .filter(({ id }) => allowed(id))
      .map(({ id, bytes, fault: why }) => ({ model_id: id, bytes, fault: why })),
    parking: plan.parking,
    upcoming: plan.upcoming,
    fallback: fallback ? { model_id: fallback.modelId, reason: fallback.reason, detail: fallback.detail } : null,
    placement: plan.placement && placementView(plan.placement),
    left_devices: plan.leftDevices.map(one => ({ ...one })),
    figures: {
      memory_bytes: Math.round(figures.bytes),
      memory_from: figures.bytesFrom,
      load_ms: figures.loadMs,
      load_ms_from: figures.loadMsFrom,
      run_ms: figures.runMs,
      slots: figures.slots,
      order_bound: figures.orderBound,
    },
    threads: plan.threads,
    schedule: plan.schedule.map(one => ({
      action: one.do,
      next_at: seconds(one.nextAt),
      until: seconds(one.until),
    })),
    benchmark: plan.benchmark,
    saved_conversations: saved && {
      conversations: saved.conversations,
      bytes: saved.bytes,
      limit_bytes: saved.limitBytes,
      age_seconds: Math.round(saved.ageMs / 1000),
      disk: saved.disk,
    },
    saved_detail: plan.savedDetail,
    affinity: plan.affinity,
    guessed_tokens: guesses && {
      tokens: guesses.tokens,
      draft_model: guesses.draftModel,
      draft_bytes: guesses.draftBytes,
      detail: guesses.detail,
    },
  }
}
