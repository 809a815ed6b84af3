import type { Sizing } from '../engines/gguf/sizing.ts'
import { type ModelShape, needOf } from '../engines/gguf/sizing-need.ts'
import type { PagedShape } from './paged-plan.ts'

/**
 * The shape of a GGUF model with that of the model that guesses its tokens. Both have a cache of the same length, so the
 * draft model is counted as part of the last block, which is the first on a GPU. Number and sizes of the other layers stay.
 */
export function withDraftModel(shape: ModelShape, draft: ModelShape): ModelShape {
  const cache = { keys: 0, values: 0, state: 0 }
  for (const { keys, values, state } of draft.blockMemory) {
    cache.keys += keys
    cache.values += values
    cache.state += state
  }
  const last = shape.blockMemory.at(-1)
  const blockMemory = [
    ...shape.blockMemory.slice(0, -1),
    {
      ...last,
      // A window of the model is none of the draft model.
      window: null,
      keys: (last?.keys ?? 0) + cache.keys,
      values: (last?.values ?? 0) + cache.values,
      state: (last?.state ?? 0) + cache.state,
    },
  ]
  const blockBytes = [...shape.blockBytes.slice(0, -1), (shape.blockBytes.at(-1) ?? 0) + draft.tensorBytes]
  return { ...shape, blockMemory, blockBytes, tensorBytes: shape.tensorBytes + draft.tensorBytes }
}

/** Bytes of a draft model in a layout: its weights, and its cache of the same length as that of the model. */
export function draftMemory(draft: ModelShape, { context, parallel, batch, kvType }: Sizing): number {
  const blockMemory = draft.blockMemory.map(block => ({ ...block, window: null }))
  const contexts = [{ tokens: context, sequences: parallel, batch }]
  const need = needOf({ ...draft, blockMemory }, { gpuLayers: 0, contexts, kvType, flash: true, cards: 1 })
  return draft.tensorBytes + need.cache
}

/** The same for vLLM, which divides both among all cards. */
export const withPagedDraft = (shape: PagedShape, draft: PagedShape): PagedShape => ({
  ...shape,
  weights: shape.weights + draft.weights,
  blockMemory: [...shape.blockMemory, ...draft.blockMemory],
})
