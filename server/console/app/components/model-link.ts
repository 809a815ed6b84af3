/** The address of a model's page in the console. Ids contain `/`. */
export const modelHref = (id: string, part = ''): string =>
  `/models/details/${id.split('/').map(encodeURIComponent).join('/')}${part}`
