/** The tokens of a TypeScript or C source, without comments: what operators (operators.mjs) find their place by. */
import typescript from 'typescript';

const C_TOKEN =
  /\/\*[^]*?\*\/|\/\/.*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|->|\+\+|--|<<=|>>=|<<|>>|&&|\|\||[-+*/%&|^=!<>]=|\.\.\.|\S/g;

function* tokensOfC(source) {
  for (const { 0: text, index } of source.matchAll(C_TOKEN))
    if (!/^\/[/*]/.test(text)) yield { text, start: index, end: index + text.length };
}

/** The leaves of the syntax tree: what a slash or a backtick begins, only a parser knows. */
function* tokensOfTypeScript(source) {
  const tree = typescript.createSourceFile('a.ts', source, typescript.ScriptTarget.ES2023, true);
  function* leaves(node) {
    if (node.kind >= typescript.SyntaxKind.FirstJSDocNode && node.kind <= typescript.SyntaxKind.LastJSDocNode) return;
    const children = node.getChildren(tree);
    for (const child of children) yield* leaves(child);
    const start = node.getStart(tree);
    const end = node.getEnd();
    if (children.length === 0 && end > start) yield { text: source.slice(start, end), start, end };
  }
  yield* leaves(tree);
}

/** Each with its text, and where in the source it starts and ends. */
export const tokensOf = (file, source) => [...(file.endsWith('.ts') ? tokensOfTypeScript : tokensOfC)(source)];
