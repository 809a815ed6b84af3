/** Texts of the page behind a link to a conversation. */
export const linkPageText = {
  title: 'Shared conversation',
  untitled: 'Without a title',
  until: (time: string) => `Shared by a link until ${time}. Answers of models can be wrong.`,
  author: 'Question',
  model: 'Model',
  file: (name: string) => `File: ${name}`,
  image: (name: string) => (name === '' ? 'Image of the message' : name),
  imageGone: (name: string) => (name === '' ? 'The image was deleted.' : `The image “${name}” was deleted.`),
  empty: 'Nothing that was said is shown.',
  unreachable: 'The server does not answer. Check the connection, and reload the page.',
  unexplained: (status: number) => `The server answered ${status} without an explanation.`,
} as const
