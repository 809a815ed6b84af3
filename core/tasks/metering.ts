import { costOf } from '../models/cost.ts'
import type { Metering } from './task.ts'

/** Meters a task in tokens, as the engine counts them. Every job is as much work as another. */
export const tokens: Metering = { unit: 'tokens', cost: costOf, work: () => 1 }

/** Meters a task in characters, at the price of input tokens. */
export const characters: Metering = { ...tokens, unit: 'characters' }
