import { z } from 'zod'
import { byteUnits, durationUnits } from './quantity-text.ts'

/** A hundred years: now and a duration together stay far below the last date that a program can write. */
const maxDurationMs = 36_500 * durationUnits.d

/** Splits a quantity in any notation; its unit is in lower case. */
const quantityIn = (text: unknown): { amount: string; unit: string } | undefined => {
  const [, amount, unit] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(String(text)) ?? []
  return amount === undefined ? undefined : { amount, unit: unit!.toLowerCase() }
}

/** Returns how to write a duration, with what a text that is none probably means: `30s` for `30 sec`. */
export function durationAdvice(text: unknown): string {
  const { amount, unit = '' } = quantityIn(text) ?? {}
  const [, name] = /^(ms|milli|s|m(?!o)|h|d)/.exec(unit) ?? []
  const meant = name === undefined ? '' : ` Did you mean '${amount}${name === 'milli' ? 'ms' : name}'?`
  return `Write a duration as 250ms, 30s, 5m, 2h or 90d.${meant}`
}

/** Returns how to write a size, with what a text that is none probably means: `150GB` for `150G`. */
export function sizeAdvice(text: unknown): string {
  const { amount, unit = '' } = quantityIn(text) ?? {}
  const [, prefix, binary] = /^([kmgt])(i?)b?$/.exec(unit) ?? []
  const meant = prefix === undefined ? '' : ` Did you mean '${amount}${prefix.toUpperCase()}${binary}B'?`
  return `Write a size as 512MiB or 24GB.${meant}`
}

/** A duration in the configuration: `250ms`, `30s`, `5m`, `2h`, or a number of milliseconds. Parsed to milliseconds. */
export const Duration = z
  .union([
    z.int().min(0),
    z.string().regex(/^\d+(\.\d+)?(ms|s|m|h|d)$/, { error: ({ input }) => durationAdvice(input) }),
  ])
  .transform((value, context) => {
    const [, amount = value, unit = 'ms'] = /^([\d.]+)(ms|s|m|h|d)$/.exec(String(value)) ?? []
    const ms = Math.round(Number(amount) * durationUnits[unit as keyof typeof durationUnits])
    if (ms > maxDurationMs) context.addIssue('A duration is at most 36500d.')
    return ms
  })
  .meta({ unit: 'milliseconds' })

/** A size in the configuration: `512MiB`, `24GB`, or a number of bytes. Parsed to bytes. */
export const Bytes = z
  .union([z.int().min(0), z.string().regex(/^\d+(\.\d+)? ?([KMGT]i?)?B$/, { error: ({ input }) => sizeAdvice(input) })])
  .transform(value => {
    if (typeof value === 'number') return value
    const [, amount, unit] = /^([\d.]+) ?([KMGT]?i?B)$/.exec(value)!
    return Math.round(Number(amount) * byteUnits[unit as keyof typeof byteUnits])
  })
  .meta({ unit: 'bytes' })
