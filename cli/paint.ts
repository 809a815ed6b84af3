import { colors } from 'consola/utils'

/** Colours by what they say. Without a terminal, or with NO_COLOR set, every one of them returns its text as it is. */
export interface Paint {
  strong: (text: string) => string
  faint: (text: string) => string
  good: (text: string) => string
  warning: (text: string) => string
  bad: (text: string) => string
  name: (text: string) => string
}

const same = (text: string): string => text
export const plain: Paint = { strong: same, faint: same, good: same, warning: same, bad: same, name: same }

const coloured: Paint = {
  strong: colors.bold,
  faint: colors.dim,
  good: colors.green,
  warning: colors.yellow,
  bad: colors.red,
  name: colors.cyan,
}

/**
 * The colours for one stream. consola honours NO_COLOR and TERM=dumb by itself, but turns colours on in pipes when it
 * finds CI or FORCE_COLOR; a pipe gets none here.
 */
export const paintFor = (isTerminal: boolean): Paint => (isTerminal ? coloured : plain)

// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** Text from outside, such as a model's answer, without the control characters that could steer a terminal. */
export const printable = (text: string): string => text.replace(controls, '')
