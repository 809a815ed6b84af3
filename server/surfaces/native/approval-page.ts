import type { Form, FormField } from '../../../core/schemas/waits.ts'

/** What the page of an approval asks. */
export interface Question {
  title: string
  text: string | null
  /** Addresses of this server. */
  images: readonly string[]
  form: Form | null
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
/** Text as HTML, also within an attribute in quotes. */
const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, character => entities[character]!)

const style = `body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#f4f4f5;color:#18181b}
main{max-width:40rem;margin:2rem auto;padding:1.5rem;background:#fff;border-radius:.75rem}
h1{font-size:1.3rem;margin:0 0 1rem}.text{white-space:pre-wrap;overflow-wrap:anywhere}
img{max-width:100%;border-radius:.5rem;margin:.5rem 0}label{display:block;margin:1rem 0 .25rem;font-weight:600}
small{display:block;color:#52525b}input:not([type=checkbox]),textarea,select{width:100%;box-sizing:border-box;font:inherit;padding:.5rem;border:1px solid #a1a1aa;border-radius:.375rem}
.actions{display:flex;gap:.75rem;margin-top:1.5rem}button{font:inherit;padding:.5rem 1.25rem;border-radius:.375rem;border:1px solid #a1a1aa;background:#fff;cursor:pointer}
button[value=approve]{background:#166534;border-color:#166534;color:#fff}.fault{color:#b91c1c;font-weight:600}
@media(prefers-color-scheme:dark){body{background:#18181b;color:#f4f4f5}main{background:#27272a}small{color:#a1a1aa}input,textarea,select,button{background:#18181b;color:inherit}}`

const page = (title: string, nonce: string, body: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex"><title>${escaped(title)}</title><style nonce="${nonce}">${style}</style></head>
<body><main>${body}</main></body></html>`

/** Returns a page that only says something. */
export const noticePage = (title: string, text: string, nonce: string): string =>
  page(title, nonce, `<h1>${escaped(title)}</h1><p>${escaped(text)}</p>`)

/** The headers of these pages: nothing but their own style and images of this server, and no script. */
export const pageHeaders = (nonce: string): string[] => [
  'content-security-policy',
  `default-src 'none'; style-src 'nonce-${nonce}'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
  'x-frame-options',
  'DENY',
  'referrer-policy',
  'no-referrer',
  'cache-control',
  'no-store',
]

/** Names of the fields of a form on the page: none of them can be one of the page's own. */
const prefix = 'field.'

/** Returns the page of an approval; `sent`: what was filled in before, and `fault` what is wrong with it. */
export function questionPage(
  { title, text, images, form }: Question,
  nonce: string,
  { fault, sent = new URLSearchParams() }: { fault?: string; sent?: URLSearchParams } = {},
): string {
  const required = new Set(form?.required)
  const fields = Object.entries(form?.properties ?? {}).map(([name, field]) =>
    fieldRows(name, field, required.has(name), sent.has('decision') ? sent : undefined),
  )
  const parts = [
    `<h1>${escaped(title)}</h1>`,
    ...(text === null ? [] : [`<div class="text">${escaped(text)}</div>`]),
    ...images.map(url => `<img src="${escaped(url)}" alt="">`),
    '<form method="post">',
    ...(fault === undefined ? [] : [`<p class="fault" role="alert">${escaped(fault)}</p>`]),
    ...fields,
    `<label for="comment">Comment</label><textarea id="comment" name="comment" rows="2" maxlength="4000">${escaped(sent.get('comment') ?? '')}</textarea>`,
    '<div class="actions"><button name="decision" value="approve">Approve</button>',
    '<button name="decision" value="reject" formnovalidate>Reject</button></div></form>',
  ]
  return page(title, nonce, parts.join('\n'))
}

function fieldRows(name: string, field: FormField, isRequired: boolean, sent: URLSearchParams | undefined): string {
  const { type = 'string', title = name, description, enum: values, format } = field
  const key = escaped(prefix + name)
  const given = sent ? (sent.get(prefix + name) ?? '') : String(field.default ?? '')
  const facts = `id="${key}" name="${key}"${isRequired ? ' required' : ''}`
  const help = description === undefined ? '' : `<small>${escaped(description)}</small>`
  const label = `<label for="${key}">${escaped(title)}${isRequired ? ' *' : ''}</label>`
  if (type === 'boolean' && !values) {
    const checked = sent ? given === 'on' : field.default === true
    return `<label><input type="checkbox" id="${key}" name="${key}"${checked ? ' checked' : ''}> ${escaped(title)}</label>${help}`
  }
  if (values) {
    const options = values.map(value => {
      const text = escaped(String(value))
      return `<option value="${text}"${String(value) === given ? ' selected' : ''}>${text}</option>`
    })
    return `${label}<select ${facts}><option value=""></option>${options.join('')}</select>${help}`
  }
  if (type !== 'string') {
    const range = [
      type === 'integer' ? 'step="1"' : 'step="any"',
      ...(field.minimum === undefined ? [] : [`min="${field.minimum}"`]),
      ...(field.maximum === undefined ? [] : [`max="${field.maximum}"`]),
    ]
    return `${label}<input type="number" ${facts} ${range.join(' ')} value="${escaped(given)}">${help}`
  }
  const length = field.maxLength === undefined ? '' : ` maxlength="${field.maxLength}"`
  return format === 'multiline'
    ? `${label}<textarea ${facts}${length} rows="5">${escaped(given)}</textarea>${help}`
    : `${label}<input type="text" ${facts}${length} value="${escaped(given)}">${help}`
}

/** Returns the values that were filled in, by field; empty ones are absent. A text that is no number stays a text. */
export function formValues({ properties }: Form, sent: URLSearchParams): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [name, { type = 'string', enum: allowed }] of Object.entries(properties)) {
    const text = sent.get(prefix + name)
    if (type === 'boolean' && !allowed) values[name] = text === 'on'
    else if (text !== null && text !== '')
      values[name] =
        allowed?.find(one => String(one) === text) ??
        (type === 'string' || Number.isNaN(Number(text)) ? text.replaceAll('\r\n', '\n') : Number(text))
  }
  return values
}
