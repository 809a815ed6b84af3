const textOf = (value: unknown): string => (typeof value === 'string' ? value.trim() : '')

/** What is written in a field of a form, without spaces around it; empty without the field. */
export const formText = (form: FormData, name: string): string => textOf(form.get(name))

/** The values of all ticked boxes of this name. */
export const formTexts = (form: FormData, name: string): string[] => form.getAll(name).map(textOf)

/** The number in a field; null if it is empty. */
export function formNumber(form: FormData, name: string): number | null {
  const written = formText(form, name)
  return written === '' ? null : Number(written)
}
