import type { FillContext } from './task.ts'

/** Returns the inputs of a workflow node as the request of a text endpoint: with the model, and never streamed. */
export function requestFor(inputs: Record<string, unknown>, { model }: FillContext): Record<string, unknown> {
  const { stream: _, ...request } = { ...inputs, model: model.id } as Record<string, unknown>
  return request
}

/** The facts of text tasks in which they do not differ. */
export const textInputs = {
  takesFiles: false,
  fill: requestFor,
  requestAgain: (stored: object): object => stored,
} as const
