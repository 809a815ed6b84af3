/** Months 01 to 12 with the days that they have in every year, so without the 29th of February. */
const day =
  '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))'
const date = `[0-9]{4}-${day}`
/** RFC 3339, without leap seconds (second 60); fractions are at most nanoseconds. */
const time = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])'
const byte = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const word = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,32}"

/**
 * Formats of strings as patterns. Each matches only values of the format, but not all of them: values that a pattern
 * cannot express, such as leap days, are left out. Source: section 7.3 of JSON Schema Validation 2020-12.
 */
export const formats: Readonly<Record<string, string>> = {
  date: `^${date}$`,
  time: `^${time}$`,
  'date-time': `^${date}T${time}$`,
  uuid: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  ipv4: `^${byte}(?:\\.${byte}){3}$`,
  email: `^${word}(?:\\.${word})?@${label}(?:\\.${label}){1,3}$`,
}
