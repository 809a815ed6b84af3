import { type Command, InvalidArgumentError, type OptionValues } from '@commander-js/extra-typings'
import { AllowedHours, Metadata } from '../../core/accounts/token-fields.ts'
import type { AllowedHours as Hours } from '../../core/store/store.ts'
import { weekdays } from '../../core/store/store.ts'
import {
  type Given,
  type NoOptions,
  nothing,
  type OptionsOf,
  orNull,
  readCount,
  readNumber,
  readOrNone,
} from '../terminal/options.ts'

const most = 1_000_000_000
const wayOfHours = 'Write it as "Mon-Fri 08:00-18:00 Europe/Berlin".'

function daysOf(text: string): Hours['ranges'][number]['days'] {
  const indexOf = (name: string): number => {
    const found = weekdays.findIndex(day => day === name.slice(0, 3).toLowerCase())
    if (found < 0) throw new InvalidArgumentError(`There is no day '${name}'. ${wayOfHours}`)
    return found
  }
  return text.split(',').flatMap(part => {
    const [from, to = from] = part.split('-').map(indexOf) as [number, number?]
    const count = ((to - from + weekdays.length) % weekdays.length) + 1
    return Array.from({ length: count }, (_, index) => weekdays[(from + index) % weekdays.length]!)
  })
}

/**
 * Reads `Mon-Fri 08:00-18:00 Europe/Berlin`: days, times, and a time zone at the end. Several ranges have `;` between
 * them.
 */
export function readAllowedHours(text: string): Hours {
  const words = text.trim().split(/\s+/)
  const timezone = words.pop() ?? ''
  const ranges = words
    .join(' ')
    .split(';')
    .map(range => {
      const match = /^([a-z,-]+) (\d\d:\d\d)-(\d\d:\d\d)$/i.exec(range.trim())
      if (!match) throw new InvalidArgumentError(wayOfHours)
      const [, days, from, to] = match as unknown as [string, string, string, string]
      return { days: [...new Set(daysOf(days))], from, to }
    })
  const read = AllowedHours.safeParse({ timezone, ranges })
  if (!read.success) throw new InvalidArgumentError(`${read.error.issues[0]!.message} ${wayOfHours}`)
  return read.data
}

/** Collects `name=value`, in addition to those before. */
export function readMetadata(text: string, before: Given<Record<string, string>> = {}): Record<string, string> {
  const split = text.indexOf('=')
  if (split < 1) throw new InvalidArgumentError('Write it as name=value.')
  const read = Metadata.safeParse({
    ...(before === nothing ? {} : before),
    [text.slice(0, split)]: text.slice(split + 1),
  })
  if (!read.success) throw new InvalidArgumentError('There are at most 16 entries, of 64 and 512 characters.')
  return read.data
}

const orNone =
  <T>(read: (text: string, before?: Given<T>) => T) =>
  (text: string, before?: Given<T>): Given<T> =>
    text === nothing ? nothing : read(text, before)

/** Adds an option for each limit of a token. `none`, which is null, is possible where a limit can be removed. */
export function withLimits<Args extends unknown[], Options extends OptionValues>(
  command: Command<Args, Options>,
  { removable }: { removable: boolean },
) {
  const none = removable ? '; none for no limit' : ''
  const count = removable ? readOrNone(1, most) : readCount(1, most)
  if (removable) command.option('--no-local-only', 'its work may leave this machine')
  return command
    .option('--local-only', 'its work never leaves this machine: no model that runs elsewhere')
    .option(
      '--spend-limit <amount>',
      `spending per calendar month in UTC; 0 is no spending${none}`,
      removable ? readOrNone(0, most, false) : readNumber(0, most),
    )
    .option('--requests-per-minute <count>', `API requests per minute${none}`, count)
    .option('--jobs-per-minute <count>', `submissions of work per minute${none}`, count)
    .option('--tokens-per-minute <count>', `input and output tokens of models per minute${none}`, count)
    .option('--concurrent-requests <count>', `synchronous requests at the same time${none}`, count)
    .option(
      '--allowed-hours <hours>',
      `when it may be used: "Mon-Fri 08:00-18:00 Europe/Berlin"${removable ? '; none for always' : ''}`,
      removable ? orNone(readAllowedHours) : readAllowedHours,
    )
    .option(
      '--metadata <name=value>',
      `a text about it; can be repeated${removable ? ' and replaces those before; none removes them' : ''}`,
      removable ? orNone(readMetadata) : readMetadata,
    )
}

/** Converts the limits that were given to fields of the API; `rates` has those of requests and of jobs. */
export const tokenFields = (options: OptionsOf<typeof withLimits<[], NoOptions>>) => ({
  rates: { api: orNull(options.requestsPerMinute), jobs: orNull(options.jobsPerMinute) },
  fields: {
    tokens_per_minute: orNull(options.tokensPerMinute),
    concurrent_requests: orNull(options.concurrentRequests),
    monthly_spend_limit: orNull(options.spendLimit),
    local_only: options.localOnly,
    allowed_hours: orNull(options.allowedHours),
    metadata: orNull(options.metadata),
  },
})
/** Undefined stays; of a new token it is no limit, or that of the token in use. Null is no limit. */
export type TokenFields = ReturnType<typeof tokenFields>
