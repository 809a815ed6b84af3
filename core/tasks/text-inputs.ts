import type { FillContext } from './task.ts'

/** Returns the inputs of a workflow node as the request of a text endpoint: with the model, without `stream`. */
export function requestFor(inputs: Record<string, unknown>, { model }: FillContext): Record<string, unknown> {
  const { stream: _, ...request } = { ...inputs, model: model.id } as Record<string, unknown>
  return request
}

/** The members that the records of all text tasks share. */
export const textInputs = {
  takesFiles: false,
  fill: requestFor,
  requestAgain: (stored: object): object => stored,
} as const
